"""The format and the dimensions of a picture, read from the bytes of the file. A fault raises ValueError."""
import struct

import png_file


def read_jpeg(file):
    """(width, height): every marker up to the pixels is walked, and the end must be there."""
    if not file.startswith(b"\xff\xd8") or not file.endswith(b"\xff\xd9"):
        raise ValueError("the file does not begin and end as a JPEG file")
    at, size = 2, None
    while file[at] == 0xFF and file[at + 1] != 0xDA:
        marker, (length,) = file[at + 1], struct.unpack_from(">H", file, at + 2)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", file, at + 5)
            size = width, height
        at += 2 + length
    if file[at] != 0xFF or size is None:
        raise ValueError("the JPEG markers are damaged")
    return size


def read_webp(file):
    """(width, height): the container's lengths must add up."""
    if file[:4] != b"RIFF" or file[8:12] != b"WEBP" or struct.unpack_from("<I", file, 4)[0] + 8 != len(file):
        raise ValueError("the file is not a whole WebP file")
    kind = file[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", file, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", file, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        return int.from_bytes(file[24:27], "little") + 1, int.from_bytes(file[27:30], "little") + 1
    raise ValueError("the first WebP chunk is unknown")


def identify(file):
    """(format, width, height)."""
    try:
        if file.startswith(png_file.SIGNATURE):
            return "png", *png_file.read(file)[:2]
        if file.startswith(b"\xff\xd8"):
            return "jpeg", *read_jpeg(file)
        if file.startswith(b"RIFF"):
            return "webp", *read_webp(file)
    except (IndexError, struct.error):
        raise ValueError("the file ends too early") from None
    raise ValueError("the file is not PNG, JPEG or WebP")


def demand_near(found, wanted, tolerance):
    if any(abs(a - b) > tolerance for a, b in zip(found, wanted)):
        shown = [tuple(round(value) for value in colour) for colour in (found, wanted)]
        raise ValueError(f"the mean colour is {shown[0]} instead of about {shown[1]}")
