# Features of images against implementations of their own in numpy, on images drawn here at odd sizes: GIST
# in double precision with full two-dimensional transforms as published, stripes and Lab histograms with
# numpy's histograms, resizing by Pillow. Local binary patterns are held against scikit-image's as well, and
# Lab against its conversion.

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import pyarrow.parquet
from PIL import Image
from skimage.color import rgb2lab
from skimage.feature import local_binary_pattern

TOLERANCE = 1e-4
SIZES = [(48, 128), (1, 1), (7, 301), (640, 3), (129, 127), (333, 250), (64, 64), (53, 131), (200, 401), (511, 90)]


def draw(folder):
    """Ten images: waves, patches and noise, grey among them."""
    random = numpy.random.default_rng(8)
    for number, (width, height) in enumerate(SIZES):
        y, x = numpy.mgrid[0:height, 0:width]
        planes = []
        for _ in range(3):
            step, turn = random.uniform(0.02, 1.5), random.uniform(0, numpy.pi)
            wave = numpy.sin(step * (x * numpy.cos(turn) + y * numpy.sin(turn)))
            patch = 60 * ((x // 9 + y // 13) % 3)
            planes.append(90 + 60 * wave + patch + random.normal(0, 12, (height, width)))
        image = Image.fromarray(numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8))
        if number == 5:
            image = image.convert("L")
        ending = "bmp" if number == 6 else "png"
        image.save(folder / f"{number:02}_c{number % 2}.{ending}")


def luma(picture):
    return numpy.asarray(Image.fromarray(picture).convert("L")).astype(numpy.float32)


def resized(picture, width, height):
    """Across first: asked for both at once, Pillow chooses the order by cost, and rounds between them."""
    image = Image.fromarray(picture)
    narrow = image.resize((width, image.height), Image.Resampling.BILINEAR)
    return numpy.asarray(narrow.resize((width, height), Image.Resampling.BILINEAR))


def smaller(plane, side):
    plane = Image.fromarray(numpy.ascontiguousarray(plane, dtype=numpy.float32))
    return numpy.asarray(plane.resize((side, side), Image.Resampling.BILINEAR)).astype(float)


def prefilter(image, cycles=4, border=5):
    spread = cycles / numpy.sqrt(numpy.log(2))
    padded = numpy.pad(numpy.log(image + 1), border, mode="symmetric")
    n = padded.shape[0]
    across, down = numpy.meshgrid(numpy.arange(-n // 2, n // 2), numpy.arange(-n // 2, n // 2))
    gains = numpy.fft.fftshift(numpy.exp(-(across**2 + down**2) / spread**2))
    rest = padded - numpy.real(numpy.fft.ifft2(numpy.fft.fft2(padded) * gains))
    variance = numpy.abs(numpy.fft.ifft2(numpy.fft.fft2(rest**2) * gains))
    return (rest / (0.2 + numpy.sqrt(variance)))[border:-border, border:-border]


def gist(plane, side=128, blocks=4):
    spectrum = numpy.fft.fft2(prefilter(smaller(plane, side)))
    across, down = numpy.meshgrid(numpy.arange(-side // 2, side // 2), numpy.arange(-side // 2, side // 2))
    radius = numpy.fft.fftshift(numpy.hypot(across, down))
    angle = numpy.fft.fftshift(numpy.angle(across + 1j * down))
    edges = numpy.floor(numpy.linspace(0, side, blocks + 1)).astype(int)
    out = []
    for scale in range(4):
        for orientation in range(8):
            away = angle + numpy.pi / 8 * orientation
            away += 2 * numpy.pi * (away < -numpy.pi) - 2 * numpy.pi * (away > numpy.pi)
            ring = -10 * 0.35 * (radius / side / (0.3 / 1.85**scale) - 1) ** 2
            gains = numpy.exp(ring - 2 * (16 * 8**2 / 32**2) * numpy.pi * away**2)
            passed = numpy.abs(numpy.fft.ifft2(spectrum * gains))
            for left, right in zip(edges[:-1], edges[1:]):
                for top, bottom in zip(edges[:-1], edges[1:]):
                    out.append(passed[top:bottom, left:right].mean())
    return numpy.array(out)


def grid(picture, cells):
    down, across = (numpy.round(numpy.linspace(0, length, cells + 1)).astype(int) for length in picture.shape[:2])
    grey = luma(picture)
    parts = []
    for top, bottom in zip(down[:-1], down[1:]):
        parts += [gist(grey[top:bottom, left:right]) for left, right in zip(across[:-1], across[1:])]
    return numpy.concatenate(parts)


def lab_histogram(picture, bins):
    values = rgb2lab(resized(picture, 128, 128))
    ranges = [(0, 100), (-87, 99), (-108, 95)]
    # White is 100 and a rounding: it belongs to the last bin.
    values[..., 0] = numpy.clip(values[..., 0], 0, 100)
    shares = [numpy.histogram(values[..., axis], bins, ranges[axis])[0] / 128**2 for axis in range(3)]
    return numpy.concatenate(shares)


def channels(person):
    """RGB, YUV, hue and saturation by the formulas that OpenCV documents, in its fixed point."""
    red, green, blue = (person[..., channel].astype(int) for channel in range(3))
    bright = (4899 * red + 9617 * green + 1868 * blue + 8192) >> 14
    bluer = numpy.clip(((blue - bright) * 8061 + (128 << 14) + 8192) >> 14, 0, 255)
    redder = numpy.clip(((red - bright) * 14369 + (128 << 14) + 8192) >> 14, 0, 255)
    most = person.max(axis=-1).astype(int)
    extent = most - person.min(axis=-1)
    numbers = numpy.arange(1, 256)
    saturations = numpy.r_[0, numpy.rint((255 << 12) / numbers)].astype(int)
    hues = numpy.r_[0, numpy.rint((256 << 12) / (6 * numbers))].astype(int)
    saturation = (extent * saturations[most] + 2048) >> 12
    later = numpy.where(most == green, blue - red + 2 * extent, red - green + 4 * extent)
    hue = (numpy.where(most == red, green - blue, later) * hues[extent] + 2048) >> 12
    return [red, green, blue, bright, bluer, redder, hue + 256 * (hue < 0), saturation]


def patterns(grey, points, radius):
    """Codes, and whether a neighbour is so nearly as bright as the pixel that rounding may decide."""
    height, width = grey.shape
    padded = numpy.pad(grey.astype(float), radius + 1, mode="edge")
    codes, close = numpy.zeros(grey.shape, int), numpy.zeros(grey.shape, bool)
    for point in range(points):
        turn = 2 * numpy.pi * point / points
        down, across = -radius * numpy.sin(turn), radius * numpy.cos(turn)
        top, left = int(numpy.floor(down + 1e-9)), int(numpy.floor(across + 1e-9))
        lower, right = max(down - top, 0), max(across - left, 0)
        value = numpy.zeros(grey.shape)
        for row, high in ((top, 1 - lower), (top + 1, lower)):
            for column, wide in ((left, 1 - right), (left + 1, right)):
                if high * wide > 1e-9:
                    start = (radius + 1 + row, radius + 1 + column)
                    value += high * wide * padded[start[0] : start[0] + height, start[1] : start[1] + width]
        codes |= (value >= grey - 1e-9).astype(int) << point
        close |= abs(value - grey) < 0.01
    return codes, close


def uniform(points):
    """Numbers of codes: uniform ones by value, all others last."""
    numbers, following = [], 0
    for code in range(1 << points):
        bits = [code >> point & 1 for point in range(points)]
        if sum(bits[point] != bits[point - 1] for point in range(points)) <= 2:
            numbers.append(following)
            following += 1
        else:
            numbers.append(points * (points - 1) + 2)
    return numpy.array(numbers)


NUMBERS = {points: uniform(points) for points in (8, 16)}


def stripes(picture, count):
    person = resized(picture, 48, 128)
    red, green, blue = (person[..., channel].astype(int) for channel in range(3))
    grey = (9798 * red + 19235 * green + 3735 * blue + (1 << 14)) >> 15
    textures = []
    for points, radius in ((8, 1), (16, 2)):
        codes, close = patterns(grey, points, radius)
        edged = numpy.pad(grey, radius + 1, mode="edge").astype(numpy.uint8)
        theirs = local_binary_pattern(edged, points, radius)[radius + 1 : -radius - 1, radius + 1 : -radius - 1]
        assert ((theirs == codes) | close).all(), "scikit-image has other patterns"
        textures.append((NUMBERS[points][codes], points * (points - 1) + 3))
    rows = numpy.round(numpy.linspace(0, 128, count + 1)).astype(int)
    out = []
    for top, bottom in zip(rows[:-1], rows[1:]):
        for values in channels(person):
            out.append(numpy.histogram(values[top:bottom], 16, (0, 256))[0])
        for numbers, kinds in textures:
            out.append(numpy.bincount(numbers[top:bottom].ravel(), minlength=kinds))
    return numpy.concatenate([counts / counts.sum() for counts in out])


def lomo(picture):
    """Local maximal occurrence, by windows cut out one after the other."""
    person = resized(picture, 48, 128)
    rgb = person.astype(float)
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    most, extent = rgb.max(axis=-1), rgb.max(axis=-1) - rgb.min(axis=-1)
    over = numpy.where(extent > 0, extent, 1)
    later = numpy.where(most == green, (blue - red) / over + 2, (red - green) / over + 4)
    sixths = numpy.where(extent > 0, numpy.where(most == red, (green - blue) / over, later), 0)
    saturation = numpy.where(most > 0, extent / numpy.where(most > 0, most, 1), 0)
    shares = [sixths / 6 % 1, saturation, most / 255]
    levels = [numpy.minimum(numpy.floor(8 * share), 7) for share in shares]

    def halved(plane):
        return (plane[::2, ::2] + plane[::2, 1::2] + plane[1::2, ::2] + plane[1::2, 1::2]) / 4

    def most_frequent(codes, bins):
        rows = []
        for top in range(0, codes.shape[0] - 9, 5):
            lefts = range(0, codes.shape[1] - 9, 5)
            windows = [codes[top : top + 10, left : left + 10].ravel() for left in lefts]
            rows.append(numpy.max([numpy.bincount(window, minlength=bins) for window in windows], axis=0))
        return numpy.concatenate(rows)

    def ternary(grey, radius):
        height, width = grey.shape
        edged = numpy.pad(grey, radius, mode="edge")
        codes = numpy.zeros(grey.shape, int)
        for place, (down, across) in enumerate([(0, radius), (-radius, 0), (0, -radius), (radius, 0)]):
            top, left = radius + down, radius + across
            other = edged[top : top + height, left : left + width]
            codes += 3**place * numpy.where(other > (1 + 0.3) * grey, 1, 2 * (other < (1 - 0.3) * grey))
        return codes

    def finished(parts):
        logarithms = numpy.log1p(numpy.concatenate(parts))
        return logarithms / numpy.linalg.norm(logarithms)

    colours, textures = [], {3: [], 5: []}
    reds, greens, blues = (person[..., channel].astype(int) for channel in range(3))
    grey = ((9798 * reds + 19235 * greens + 3735 * blues + (1 << 14)) >> 15).astype(float)
    for scale in range(3):
        if scale:
            levels = [numpy.floor(halved(level)) for level in levels]
            grey = halved(grey)
        colours.append(most_frequent((64 * levels[2] + 8 * levels[1] + levels[0]).astype(int), 512))
        for radius, parts in textures.items():
            parts.append(most_frequent(ternary(grey, radius), 81))
    return numpy.concatenate([finished(colours), finished(textures[3]), finished(textures[5])])


def metra(binary, folder, arguments):
    output = folder / "features.parquet"
    line = [binary, "features", *arguments, folder, "--pattern", "{label:number}_c{camera}", "-o", output]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    table = pyarrow.parquet.read_table(output)
    assert table["label"].to_pylist() == list(range(10)), table["label"]
    assert table["camera"].to_pylist() == [0, 1] * 5, table["camera"]
    return table["path"].to_pylist(), numpy.stack(table["vector"].to_numpy(zero_copy_only=False))


def main():
    agree = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw(folder)
        cases = [
            ("stripes", [], 2580, lambda p: stripes(p, 6)),
            ("stripes", ["--stripes", "5"], 2150, lambda p: stripes(p, 5)),
            ("lomo", [], 26960, lomo),
            ("lomo", ["--stripes"], 29540, lambda p: numpy.r_[lomo(p), stripes(p, 6)]),
            ("gist", [], 512, lambda p: gist(luma(p))),
            ("gist", ["--lab", "10"], 542, lambda p: numpy.r_[gist(luma(p)), lab_histogram(p, 10)]),
            ("gist", ["--colour"], 1536, lambda p: numpy.concatenate([gist(p[..., c]) for c in range(3)])),
            ("gist", ["--side", "96", "--blocks", "3"], 288, lambda p: gist(luma(p), 96, 3)),
            ("grid", ["--cells", "3"], 4608, lambda p: grid(p, 3)),
        ]
        for kind, more, dimension, wanted in cases:
            paths, found = metra(sys.argv[1], folder, [kind, *more])
            assert found.shape == (10, dimension), found.shape
            worst = 0
            for path, row in zip(paths, found):
                picture = numpy.asarray(Image.open(path).convert("RGB"))
                if kind == "grid" and min(picture.shape[:2]) < 3:
                    continue
                worst = max(worst, abs(row - wanted(picture)).max())
            print(f"  {' '.join([kind, *more])}: largest difference {worst:.1e}")
            agree &= bool(worst <= TOLERANCE)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
