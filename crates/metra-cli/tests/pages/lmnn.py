"""Scores of successive screenshots by LMNN (metric-learn), for tests/pages/browser.rs.

In the folder given: rows.f32, the descriptors of all versions, and classes.txt, the class of each version of
the first part. LMNN learns from the first part, after PCA fitted there; distances of successive pairs in the
rest are printed as a JSON list. Classes of one version have no neighbour to be drawn to and are left out.
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
values = np.fromfile(folder / "rows.f32", dtype="<f4").astype(float)
versions = sum(1 for _ in (folder / "shots").glob("*.png"))
rows = values.reshape(versions, -1)
sizes = np.bincount(classes)
several = sizes[classes] > 1
pca = PCA(n_components=0.99).fit(rows[:first])
points = pca.transform(rows)
lmnn = LMNN(n_neighbors=1, random_state=0).fit(points[:first][several], classes[several])
mapped = lmnn.transform(points)
scores = np.linalg.norm(mapped[first + 1 :] - mapped[first:-1], axis=1)
json.dump(scores.tolist(), sys.stdout)
