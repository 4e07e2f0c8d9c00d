"""Tables in Markdown that are readable as text. All of it is pure."""


def grouped(number):
    return format(number, ",")


def shown(value):
    """Returns a figure with three significant digits, or a word."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 100:
        return grouped(round(value))
    return "%.2f" % value if abs(value) < 10 else "%.1f" % value


def table(title, columns, rows):
    """Returns the lines of a table: `columns` are pairs of a key and its heading, rows have the figures by key."""
    cells = [[heading for _, heading in columns]]
    cells += [[shown(row.get(key)) for key, _ in columns] for row in rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    # Names and notes are aligned to the left.
    is_number = [all(not isinstance(row.get(key), str) for row in rows) for key, _ in columns]

    def line(row):
        return "| %s |" % " | ".join(
            cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, is_number))

    rule = "|%s|" % "|".join("-" * (width + 1) + (":" if number else "-") for width, number in zip(widths, is_number))
    return ["", title, "", line(cells[0]), rule, *[line(row) for row in cells[1:]]]
