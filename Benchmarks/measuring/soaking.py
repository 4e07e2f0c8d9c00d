"""Whether what a program uses stays level, from its own metrics. All of it is pure."""

# By what a metric is divided.
SCALES = {"process_resident_memory_bytes": 1 << 20}
# What is looked at, the heading of its panel, and by how much the line through the last half of the points may rise in
# that half: a part of the median, and so much besides for what any program does now and then.
LEVELS = {
    "process_resident_memory_bytes": ("resident memory, MiB", 0.05, 4),
    "process_open_fds": ("open descriptors", 0.05, 8),
    "process_threads": ("threads", 0.05, 4),
    "alight_queue_jobs": ("jobs that wait or run", 0.05, 50),
    "alight_settling_paths": ("paths that settle", 0.05, 200),
}
# Counts that grow by their nature; drawn as how many a second.
RATES = {"alight_jobs_total": "jobs done a second"}


def parse(text):
    """The value of each metric, summed over its labels."""
    values = {}
    for line in text.splitlines():
        if line.startswith("#") or " " not in line:
            continue
        name, value = line.rsplit(" ", 1)
        values[name.split("{")[0]] = values.get(name.split("{")[0], 0) + float(value)
    return {name: value / SCALES.get(name, 1) for name, value in values.items()}


def slope(points):
    """Of the line through points of (time, value) that leaves the least squares."""
    count = len(points)
    middle = sum(time for time, _ in points) / count
    level = sum(value for _, value in points) / count
    width = sum((time - middle) ** 2 for time, _ in points)
    return sum((time - middle) * (value - level) for time, value in points) / width if width else 0.0


def last_half(points):
    middle = (points[0][0] + points[-1][0]) / 2
    return [point for point in points if point[0] >= middle]


def growth(points):
    """By how much the line through the last half of the points rises."""
    half = last_half(points)
    return slope(half) * (half[-1][0] - half[0][0])


def judge(points, part, besides):
    """The growth, what is allowed, and whether it stays within."""
    values = sorted(value for _, value in last_half(points))
    allowed = part * values[len(values) // 2] + besides
    rise = growth(points)
    return rise, allowed, rise <= allowed


def rates(points):
    """How many a second, from counts."""
    return [
        (after, (more - less) / (after - before))
        for (before, less), (after, more) in zip(points, points[1:]) if after > before]
