# The set that the scripts beside this file learn from, made by a formula that the tests have too.

import numpy

ROWS, DIM, CLASSES = 60, 4, 3


def data():
    """Whole numbers in 32nds, so that f32 holds them; class r mod 3, shifted in two columns."""
    rows = numpy.empty((ROWS, DIM))
    for r in range(ROWS):
        for c in range(DIM):
            rows[r, c] = (r * r * 37 + r * c * 101 + c * c * 59 + r * 13) % 97
        rows[r, 0] += 16 * (r % CLASSES)
        rows[r, 1] -= 12 * (r % CLASSES)
    return rows / 32, numpy.arange(ROWS) % CLASSES


def maps():
    """Maps to take objectives at: the identity, and four and two rows of a formula."""
    made = numpy.empty((DIM, DIM))
    for i in range(DIM):
        for j in range(DIM):
            made[i, j] = ((5 * i + 3 * j + i * j) % 7 - 2) / 4
    return {"IDENTITY": numpy.eye(DIM), "FULL": made, "LOW": made[:2]}


def listed(values, digits=7):
    return ", ".join(f"{v:.{digits}f}" for v in numpy.ravel(values))
