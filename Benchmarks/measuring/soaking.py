"""Checks from the metrics of a program whether its resource usage stays level. All of it is pure."""

# The divisor of each metric.
SCALES = {"process_resident_memory_bytes": 1 << 20}
# The checked metrics, the headings of their panels, and the allowed rise of the line through the last half of the
# points in that half: a part of the median, plus an absolute amount for the occasional work of any program.
LEVELS = {
    "process_resident_memory_bytes": ("resident memory, MiB", 0.05, 4),
    "process_open_fds": ("open descriptors", 0.05, 8),
    "process_threads": ("threads", 0.05, 4),
    "alight_queue_jobs": ("waiting and running jobs", 0.05, 50),
    "alight_settling_paths": ("settling paths", 0.05, 200),
}
# Counters, which always grow; plotted as rates per second.
RATES = {"alight_jobs_total": "jobs done per second"}


def parse(text):
    """Returns the value of each metric, summed over its labels."""
    values = {}
    for line in text.splitlines():
        if line.startswith("#") or " " not in line:
            continue
        name, value = line.rsplit(" ", 1)
        values[name.split("{")[0]] = values.get(name.split("{")[0], 0) + float(value)
    return {name: value / SCALES.get(name, 1) for name, value in values.items()}


def slope(points):
    """Returns the slope of the least-squares line through points of (time, value)."""
    count = len(points)
    middle = sum(time for time, _ in points) / count
    level = sum(value for _, value in points) / count
    width = sum((time - middle) ** 2 for time, _ in points)
    return sum((time - middle) * (value - level) for time, value in points) / width if width else 0.0


def last_half(points):
    middle = (points[0][0] + points[-1][0]) / 2
    return [point for point in points if point[0] >= middle]


def growth(points):
    """Returns the rise of the line through the last half of the points."""
    half = last_half(points)
    return slope(half) * (half[-1][0] - half[0][0])


def judge(points, part, absolute):
    """Returns the growth, the allowed growth, and whether it is within."""
    values = sorted(value for _, value in last_half(points))
    allowed = part * values[len(values) // 2] + absolute
    rise = growth(points)
    return rise, allowed, rise <= allowed


def rates(points):
    """Returns rates per second from counts."""
    return [
        (after, (more - less) / (after - before))
        for (before, less), (after, more) in zip(points, points[1:]) if after > before]
