"""A line for people, and one that `cargo xtask bench --python` reads."""

import statistics


def say(name, unit, values):
    """The median of some repeats, with the least and the greatest."""
    median, low, high = statistics.median(values), min(values), max(values)
    print(f"{name}: {median:.3f} {unit} ({low:.3f} to {high:.3f})")
    print("measured", name, unit, f"{median:.6f}", f"{low:.6f}", f"{high:.6f}", sep="\t")
