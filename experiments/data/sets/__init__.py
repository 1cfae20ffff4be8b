"""Builders of the data sets, one module a group; `registry` lists them."""
