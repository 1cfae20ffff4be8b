"""Scores of successive screenshots by LMNN (metric-learn), for tests/pages/browser.rs.

In the folder given: rows.f32, the descriptors of all versions, and classes.txt, the class of each version of
the first part, from which LMNN learns. PCA of all versions only turns them (it keeps all distances): fitted on
the first part alone it would lose what is new later. Classes of one version have no neighbour to be drawn to
and are left out. Printed is a JSON object: learning rate to distances of the successive pairs of the rest. The
first rate is the package's default, at which LMNN hardly moves here.
"""

import json
import pathlib
import sys

import numpy as np
from metric_learn import LMNN
from sklearn.decomposition import PCA

folder = pathlib.Path(sys.argv[1])
classes = np.array([int(line) for line in (folder / "classes.txt").read_text().split()])
first = len(classes)
versions = sum(1 for _ in (folder / "shots").glob("*.png"))
rows = np.fromfile(folder / "rows.f32", dtype="<f4").astype(float).reshape(versions, -1)
points = PCA(n_components=versions - 1).fit_transform(rows)
points /= points.std()
several = np.bincount(classes)[classes] > 1
found = {}
for rate in (1e-7, 1e-5, 1e-4, 1e-3):
    lmnn = LMNN(n_neighbors=1, init="identity", learn_rate=rate, max_iter=300, random_state=0)
    lmnn.fit(points[:first][several], classes[several])
    mapped = lmnn.transform(points)
    found[str(rate)] = np.linalg.norm(mapped[first + 1 :] - mapped[first:-1], axis=1).tolist()
json.dump(found, sys.stdout)
