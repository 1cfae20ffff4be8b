"""Index files of FAISS, byte by byte: a linear map in front of a flat index.

    pip install faiss-cpu==1.15.1
    python tests/oracles/constants/faiss_bytes.py

What it prints stands as constants in crates/metra-stores/src/export/faiss.rs. Run by hand.
"""

import faiss
import numpy as np


def written(flat, items, transforms, ids=None):
    items = np.array(items, np.float32).reshape(-1, 2)
    if ids is None:
        flat.add(items)
    else:
        flat = faiss.IndexIDMap(flat)
        flat.add_with_ids(items, np.array(ids, np.int64))
    index = faiss.IndexPreTransform(flat)
    for transform in reversed(transforms):
        index.prepend_transform(transform)
    return bytes(faiss.serialize_index(index)).hex()


linear = faiss.LinearTransform(3, 2, True)
faiss.copy_array_to_vector(np.array([1, 2, 3, 4, 5, 6], np.float32), linear.A)
faiss.copy_array_to_vector(np.array([0.5, -1], np.float32), linear.b)
linear.is_trained = True
unit = faiss.NormalizationTransform(2)
print(written(faiss.IndexFlatL2(2), [], [linear]))
print(written(faiss.IndexFlatIP(2), [[1, 0], [0.5, -0.75]], [linear, unit]))
print(written(faiss.IndexFlatL2(2), [[7, 8]], [linear], [-3]))
