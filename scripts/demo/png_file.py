"""PNG files, written and read in full with only the standard library."""
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write(width, height, channels, pixels):
    """The file's bytes. `pixels` holds 3 (RGB) or 4 (RGBA) bytes a pixel."""
    stride = width * channels
    rows = []
    for y in range(height):
        row = pixels[y * stride:(y + 1) * stride]
        left = bytes(channels) + row[:-channels]
        rows.append(b"\1" + bytes((a - b) & 255 for a, b in zip(row, left)))
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    data = zlib.compress(b"".join(rows), 9)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def chunks(file):
    """(name, data) of every chunk, checksums verified. Raises ValueError on a damaged file."""
    if not file.startswith(SIGNATURE):
        raise ValueError("the file has no PNG signature")
    at = len(SIGNATURE)
    while True:
        if at + 12 > len(file):
            raise ValueError("the file ends before its IEND")
        (length,) = struct.unpack_from(">I", file, at)
        name, data = file[at + 4:at + 8], file[at + 8:at + 8 + length]
        if file[at + 8 + length:at + 12 + length] != struct.pack(">I", zlib.crc32(name + data)):
            raise ValueError(f"the checksum of the chunk {name.decode('latin-1')} is wrong")
        yield name, data
        at += 12 + length
        if name == b"IEND":
            return


def paeth(a, b, c):
    pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def unfilter(kind, row, above, step):
    if kind == 1:
        for i in range(step, len(row)):
            row[i] = (row[i] + row[i - step]) & 255
    elif kind == 2:
        for i, up in enumerate(above):
            row[i] = (row[i] + up) & 255
    elif kind == 3:
        for i, up in enumerate(above):
            row[i] = (row[i] + ((row[i - step] if i >= step else 0) + up) // 2) & 255
    elif kind == 4:
        for i, up in enumerate(above):
            left, corner = (row[i - step], above[i - step]) if i >= step else (0, 0)
            row[i] = (row[i] + paeth(left, up, corner)) & 255
    elif kind != 0:
        raise ValueError(f"the file has the unknown filter {kind}")


def read(file):
    """(width, height, channels, rows); a row is a bytearray. Every byte is checked. Raises ValueError."""
    parts = list(chunks(file))
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", parts[0][1])
    if depth != 8 or colour not in CHANNELS or interlace != 0:
        raise ValueError(f"depth {depth}, colour type {colour}, interlace {interlace} are not supported")
    step = CHANNELS[colour]
    stride = width * step
    try:
        raw = zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT"))
    except zlib.error as error:
        raise ValueError(f"the pixels do not decompress: {error}") from None
    if len(raw) != height * (stride + 1):
        raise ValueError(f"the file has {len(raw)} bytes of pixels instead of {height * (stride + 1)}")
    rows, above = [], bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        row = bytearray(raw[start + 1:start + 1 + stride])
        unfilter(raw[start], row, above, step)
        rows.append(row)
        above = row
    return width, height, step, rows


def mean_colour(picture, box=None, background=255):
    """Mean (red, green, blue) of (x, y, width, height), or of the whole picture, over a grey background."""
    width, height, step, rows = picture
    x, y, w, h = box or (0, 0, width, height)
    sums = [0.0, 0.0, 0.0]
    for row in rows[y:y + h]:
        part = row[x * step:(x + w) * step]
        for c in range(3):
            values = part[c if step >= 3 else 0::step]
            if step in (2, 4):
                alphas = part[step - 1::step]
                sums[c] += sum(v * a + background * (255 - a) for v, a in zip(values, alphas)) / 255
            else:
                sums[c] += sum(values)
    return tuple(total / (w * h) for total in sums)
