# LDA against scikit-learn's: squared distances between all mapped rows. scikit-learn's eigen solver
# scales directions as metra does, so that the spread inside classes is the identity along them.
#
# Its shrinkage changes the spread of class means as well, which a ridge does not: with a ridge the
# reference is scipy's solution of the generalised eigenproblem.

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import scipy.linalg
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

TOLERANCE = 1e-5


def squared_distances(rows):
    return ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)


def metra(binary, data, labels, rank, ridge):
    with tempfile.TemporaryDirectory() as folder:
        vectors, names = Path(folder) / "x.npy", Path(folder) / "y.txt"
        model, mapped = Path(folder) / "lda.metra", Path(folder) / "z.npy"
        numpy.save(vectors, data)
        names.write_text("".join(f"class-{label}\n" for label in labels), encoding="utf-8")
        train = [binary, "train", vectors, "--label", names, "--method", "lda", "--holdout", "none"]
        train += ["--set", f"rank={rank}", "--set", f"ridge={ridge}", "--score", "euclid"]
        quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*train, "-o", model], **quiet)
        subprocess.run([binary, "embed", model, vectors, "-o", mapped], **quiet)
        return numpy.load(mapped).astype(float)


def main():
    draw = numpy.random.default_rng(1)
    labels = draw.integers(0, 6, size=300)
    centres = 2 * draw.normal(size=(6, 9))
    spread = draw.normal(size=(9, 9))
    data = (centres[labels] + draw.normal(size=(300, 9)) @ spread).astype(numpy.float32)
    reference = LinearDiscriminantAnalysis(solver="eigen", n_components=4)
    plain = reference.fit(data.astype(float), labels).transform(data)
    means = numpy.stack([data[labels == c].mean(axis=0, dtype=float) for c in range(6)])[labels]
    within = (data - means).T @ (data - means) / len(data)
    centred = means - data.mean(axis=0, dtype=float)
    ridged = within + 0.2 * numpy.trace(within) / 9 * numpy.eye(9)
    _, directions = scipy.linalg.eigh(centred.T @ centred / len(data), ridged)
    agree = True
    for ridge, wanted in ((0, plain), (0.2, data @ directions[:, :-5:-1])):
        wanted = squared_distances(wanted)
        found = squared_distances(metra(sys.argv[1], data, labels, 4, ridge))
        difference = abs(found - wanted).max() / wanted.max()
        print(f"  ridge {ridge}: largest difference {difference:.1e} of the largest distance")
        agree &= bool(difference <= TOLERANCE)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
