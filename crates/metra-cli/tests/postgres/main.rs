//! A real PostgreSQL with pgvector: models are pushed, killed, searched, swapped and rolled back. Every test
//! starts a server of its own (`server.rs`), from the folder that `METRA_POSTGRES` names; without it the tests
//! say so and pass.

#![cfg(feature = "postgres")]

mod codes;
mod encryption;
mod errors;
mod families;
mod life;
mod live;
mod python;
mod real;
mod server;
mod tables;
