"""Writes the valid inputs of the fuzz targets with writers that are not Metra's: numpy, PyArrow and Pillow.

python fuzz/make_corpus.py   (needs numpy, pyarrow and pillow; run where the kept corpus is to be made anew)
"""

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from PIL import Image

CORPUS = Path(__file__).parent / "corpus"
ROWS, DIM = 12, 3
values = (np.arange(ROWS * DIM, dtype=np.float32).reshape(ROWS, DIM) * 7 % 11) / 4
labels = [f"class {row % 3}" for row in range(ROWS)]


def keep(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def written(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()


fixed = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIM)
lists = pa.array(values.astype(np.float64).tolist(), pa.list_(pa.float64()))
tables = {
    "fixed": pa.table({"vector": fixed, "label": labels}),
    "lists": pa.table({"vector": lists, "label": pa.array(labels).dictionary_encode()}),
    "columns": pa.table(
        {f"vector_{at}": values[:, at].astype(np.float16 if at else np.int32) for at in range(DIM)}
        | {"label": np.arange(ROWS) % 3}
    ),
}
for name, table in tables.items():
    for codec in ("none", "snappy", "zstd", "lz4", "gzip"):
        content = written(
            lambda out: pa.parquet.write_table(
                table,
                out,
                compression=codec,
                row_group_size=5,
                data_page_version="2.0" if codec == "zstd" else "1.0",
                use_dictionary=codec != "gzip",
                write_page_checksum=codec == "snappy",
            )
        )
        keep("parquet", f"{name}_{codec}", content)
    for codec in ("uncompressed", "lz4", "zstd"):
        content = written(
            lambda out: pa.feather.write_feather(table, out, compression=codec, chunksize=5)
        )
        keep("feather", f"{name}_{codec}", content)
for dtype in ("<f4", "<f8", ">f4", "<f2", "<i4", "|u1"):
    content = written(lambda out: np.save(out, values.astype(dtype)))
    keep("npy", dtype.strip("<|>") + ("_big" if dtype[0] == ">" else ""), content)
keep("npy", "columns_first", written(lambda out: np.save(out, np.asfortranarray(values))))
head = ",".join([f"vector_{at}" for at in range(DIM)] + ["label"])
lines = [",".join([*map(str, row), f'"{label}"']) for row, label in zip(values.tolist(), labels)]
keep("csv", "plain", "\n".join([head, *lines]) + "\n")
keep("csv", "quoted", "\r\n".join(["\ufeff" + head, *lines, '1,2,3,"a ""b"""']))
rows = [{"vector": row, "label": label} for row, label in zip(values.tolist(), labels)]
keep("json_lines", "plain", "\n".join(map(json.dumps, rows)))

picture = (np.arange(17 * 13 * 3) ** 2 // 64 % 256).astype(np.uint8).reshape(13, 17, 3)
image = Image.fromarray(picture)
for name, form, mode, options in [
    ("plain.png", "PNG", "RGB", {}),
    ("palette.png", "PNG", "P", {}),
    ("alpha.png", "PNG", "RGBA", {}),
    ("grey.png", "PNG", "L", {}),
    ("deep.png", "PNG", "I;16", {}),
    ("plain.jpg", "JPEG", "RGB", {"quality": 80}),
    ("progressive.jpg", "JPEG", "RGB", {"progressive": True}),
    ("cmyk.jpg", "JPEG", "CMYK", {}),
    ("plain.bmp", "BMP", "RGB", {}),
    ("palette.bmp", "BMP", "P", {}),
    ("lossy.webp", "WEBP", "RGB", {}),
    ("lossless.webp", "WEBP", "RGBA", {"lossless": True}),
]:
    converted = image.convert("L").convert("I;16") if mode == "I;16" else image.convert(mode)
    keep("image", name, written(lambda out: converted.save(out, form, **options)))

TEXTS = {
    "plain": "warca",
    "tags": "<script>alert('1')</script>\" onload=x & ]]> {{ name }}",
    "markdown": "# a | b *c* _d_ [e](f) `g` ~h~ - i\n\n1. j > k",
    "quotes": "a\"b'c\\d; DROP TABLE items; -- */ /* $$",
    "letters": "größer ≈ χ² \u202e\u0007\u001b[31m",
}
for name, text in TEXTS.items():
    keep("report", name, text)
    keep("names", name, text)
for name, password in [("plain", "secret"), ("at", "se@cret/pass:word"), ("escaped", "se%40cret%2F")]:
    keep("postgres_address", name, password)
for name, address in [("scheduler", "df://node-1.lan:50050"), ("plain", "localhost"), ("store", "s3://b/k/")]:
    keep("cluster_address", name, address)
# Settings of passes and stages of plans begin with the number of their kind.
for number in range(14):
    keep("pass", f"short_{number:02}", bytes([number, 3, 3, 1, 0, 0, 0, 0]))
for number in range(5):
    keep("plan", f"short_{number}", b"\x07metra" + bytes([number, 1, 1, 0, 0, 0]))
