"""Renders the demo's pictures. Standard library only; the same bytes every time.

    python3 make_pictures.py DIR
"""
import math
import pathlib
import random
import sys

import png_file


def byte(value):
    return max(0, min(255, round(value * 255)))


def render(width, height, shade):
    """A picture with the colours from shade(x, y): red, green, blue and maybe alpha, each 0 to 1."""
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            pixels += bytes(byte(value) for value in shade(x, y))
    return png_file.write(width, height, len(pixels) // (width * height), bytes(pixels))


def mix(a, b, t):
    return tuple(p + (q - p) * t for p, q in zip(a, b))


def rainbow(t):
    return tuple(0.5 + 0.5 * math.cos(math.tau * (t + shift)) for shift in (0.0, 0.33, 0.67))


def gradient(width=400, height=240):
    corners = (0.95, 0.35, 0.2), (0.98, 0.85, 0.3), (0.15, 0.2, 0.6), (0.1, 0.7, 0.7)
    return render(width, height, lambda x, y: mix(mix(corners[0], corners[1], x / width),
                                                  mix(corners[2], corners[3], x / width), y / height))


def escape(z, c, limit=60):
    for i in range(limit):
        if abs(z) > 2:
            return (i + 1 - math.log2(math.log(abs(z)))) / limit
        z = z * z + c
    return 0


def mandelbrot(width=320, height=240):
    def shade(x, y):
        t = escape(0, complex(x / width * 3 - 2.2, y / height * 2.3 - 1.15))
        return mix((0.03, 0.06, 0.25), rainbow(t * 2), min(1, t * 3)) if t else (0.02, 0.02, 0.08)
    return render(width, height, shade)


def julia(width=300, height=200):
    def shade(x, y):
        t = escape(complex(x / width * 3 - 1.5, y / height * 2 - 1), complex(-0.79, 0.15))
        return mix((0.05, 0.0, 0.15), (1.0, 0.85, 0.5), min(1, t * 2.5))
    return render(width, height, shade)


def plasma(width=256, height=256):
    def shade(x, y):
        value = (math.sin(x / 23) + math.sin(y / 17) + math.sin((x + y) / 31)
                 + math.sin(math.hypot(x - 90, y - 160) / 13)) / 4
        return rainbow(value / 2)
    return render(width, height, shade)


def rings(width=240, height=240):
    def shade(x, y):
        a, b = math.hypot(x - 80, y - 120), math.hypot(x - 160, y - 120)
        wave = 0.5 + 0.25 * (math.sin(a / 3.5) + math.sin(b / 3.5))
        return mix((0.05, 0.1, 0.3), (0.9, 0.95, 1.0), wave)
    return render(width, height, shade)


SPHERES = [((-1.1, -0.1, 4.2), 0.9, (0.9, 0.25, 0.2)), ((0.9, 0.1, 3.6), 0.7, (0.2, 0.5, 0.9)),
           ((0.1, -0.5, 2.7), 0.35, (0.95, 0.8, 0.25)), ((2.0, -0.2, 5.5), 0.9, (0.3, 0.75, 0.35))]
LIGHT = (-0.55, 0.75, -0.37)


def dot(a, b):
    return sum(p * q for p, q in zip(a, b))


def nearest(origin, ray):
    best = None
    for centre, radius, colour in SPHERES:
        offset = tuple(p - q for p, q in zip(origin, centre))
        half = dot(offset, ray)
        under = half * half - dot(offset, offset) + radius * radius
        distance = -half - math.sqrt(under) if under > 0 else 0
        if distance > 1e-3 and (best is None or distance < best[0]):
            point = tuple(o + r * distance for o, r in zip(origin, ray))
            best = distance, point, tuple((p - c) / radius for p, c in zip(point, centre)), colour
    if ray[1] < -1e-3:
        distance = (-0.9 - origin[1]) / ray[1]
        if distance > 1e-3 and (best is None or distance < best[0]):
            point = tuple(o + r * distance for o, r in zip(origin, ray))
            light = (math.floor(point[0]) + math.floor(point[2])) % 2
            best = distance, point, (0, 1, 0), ((0.85, 0.85, 0.8) if light else (0.3, 0.32, 0.38))
    return best


def trace(origin, ray, depth=0):
    hit = nearest(origin, ray)
    sky = mix((0.9, 0.93, 1.0), (0.25, 0.5, 0.85), max(0, min(1, ray[1] * 1.4 + 0.2)))
    if hit is None:
        return sky
    distance, point, normal, colour = hit
    lit = 0.25 if nearest(point, LIGHT) else 0.25 + 0.75 * max(0, dot(normal, LIGHT))
    shaded = tuple(c * lit for c in colour)
    if depth < 2:
        mirror = tuple(r - 2 * dot(ray, normal) * n for r, n in zip(ray, normal))
        shaded = mix(shaded, trace(point, mirror, depth + 1), 0.22)
    return mix(shaded, sky, min(0.9, distance / 30))


def spheres(width=320, height=200):
    def shade(x, y):
        ray = ((x - width / 2) / height * 1.2, (height / 2 - y) / height * 1.2 - 0.12, 1.0)
        length = math.sqrt(dot(ray, ray))
        return trace((0, 0.2, 0), tuple(r / length for r in ray))
    return render(width, height, shade)


class Noise:
    """Smooth noise: random values on a lattice, in several octaves."""

    def __init__(self, seed):
        source = random.Random(seed)
        self.values = [source.random() for _ in range(64 * 64)]

    def at(self, x, y):
        column, line = math.floor(x), math.floor(y)
        u, v = (f * f * (3 - 2 * f) for f in (x - column, y - line))

        def value(i, j):
            return self.values[(line + j) % 64 * 64 + (column + i) % 64]

        upper = value(0, 0) + (value(1, 0) - value(0, 0)) * u
        lower = value(0, 1) + (value(1, 1) - value(0, 1)) * u
        return upper + (lower - upper) * v

    def octaves(self, x, y, count=5):
        return sum(self.at(x * 2 ** i, y * 2 ** i) / 2 ** (i + 1) for i in range(count))


def clouds(width=280, height=180):
    noise = Noise(7)

    def shade(x, y):
        cover = max(0, min(1, (noise.octaves(x / 60, y / 40) - 0.35) * 2.6))
        return mix(mix((0.2, 0.45, 0.85), (0.6, 0.78, 0.95), y / height), (1, 1, 1), cover)
    return render(width, height, shade)


def mountains(width=360, height=220):
    noise = Noise(11)
    ridges = [[height * (0.3 + 0.13 * k) + 60 * (noise.octaves(x / (90 - 18 * k) + 9 * k, 3.5 * k) - 0.5)
               for x in range(width)] for k in range(4)]

    def shade(x, y):
        for k in (3, 2, 1, 0):
            if y > ridges[k][x]:
                grain = noise.at(x / 2, y / 2) * 0.08
                return tuple(c + grain for c in mix((0.62, 0.66, 0.78), (0.08, 0.2, 0.16), k / 3))
        glow = math.exp(-math.hypot(x - width * 0.7, y - height * 0.28) / 45)
        return mix(mix((0.3, 0.45, 0.75), (0.98, 0.75, 0.55), y / height * 1.7), (1, 0.95, 0.75), min(1, glow))
    return render(width, height, shade)


def badge(width=200, height=200):
    """A flower on a disc, transparent around the disc: the alpha channel."""
    def shade(x, y):
        dx, dy = x - width / 2 + 0.5, y - height / 2 + 0.5
        radius = math.hypot(dx, dy)
        alpha = max(0, min(1, 92 - radius))
        petal = 36 + 26 * math.cos(5 * math.atan2(dx, -dy))
        colour = (1, 0.88, 0.3) if radius < petal else mix((0.75, 0.15, 0.3), (0.35, 0.05, 0.25), radius / 92)
        return (*colour, alpha)
    return render(width, height, shade)


PICTURES = {"gradient": gradient, "mandelbrot": mandelbrot, "julia": julia, "plasma": plasma, "rings": rings,
            "spheres": spheres, "clouds": clouds, "mountains": mountains, "badge": badge}


def make_all(folder):
    """Writes every missing picture; returns the paths of all pictures by name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, draw in PICTURES.items():
        paths[name] = folder / f"{name}.png"
        if not paths[name].exists():
            paths[name].write_bytes(draw())
    return paths


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, path in make_all(pathlib.Path(sys.argv[1])).items():
        print(f"{path}  {path.stat().st_size} bytes")
