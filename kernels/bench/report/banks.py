"""Draws in which banks of shared memory a column of a 32 x 32 tile of 4-byte elements lies, for four layouts that rungs
of the transpositions have.

Usage: banks.py FILE.svg

Needs Python's standard library only. Colours are readable on light and on dark pages.
"""

import sys

import plot_ladder

BANKS = SIDE = 32
COLUMN = 5  # any would do
# Rung, and the place of element x of row y in words, as in kernels/transpose/ (RowMajorTile, PaddedTile, ...).
LAYOUTS = (("shared", "rows follow each other", lambda y, x: y * SIDE + x),
           ("padded", "33 words a row", lambda y, x: y * (SIDE + 1) + x),
           ("shifted", "row y rotated by y", lambda y, x: y * SIDE + (x + y) % SIDE),
           ("swizzled", "x XOR y", lambda y, x: y * SIDE + (x ^ y)))
CELL, GAP, TOP = 5, 28, 78


def passes(layout, column=COLUMN):
    """How many times shared memory is asked to serve a warp of which lane y reads element `column` of row y."""
    banks = [layout(y, column) % BANKS for y in range(SIDE)]
    return max(banks.count(bank) for bank in banks)


def panel(left, name, what, layout):
    times = passes(layout)
    parts = [plot_ladder.text(left, 44, name, 13, weight="bold"), plot_ladder.text(left, 58, what, 10),
             plot_ladder.text(left, 71, f"{times} passes" if times > 1 else "1 pass", 10,
                              fill=plot_ladder.ROOF if times > 1 else plot_ladder.OURS),
             f"<rect x='{left}' y='{TOP}' width='{BANKS * CELL}' height='{SIDE * CELL}' fill='none' "
             f"stroke='{plot_ladder.INK}' stroke-width='0.5'/>"]
    colour = plot_ladder.ROOF if times > 1 else plot_ladder.OURS
    for y in range(SIDE):
        # A padded row begins a bank further on: drawn is the bank, not the address.
        bank = layout(y, COLUMN) % BANKS
        parts.append(f"<rect class='element' x='{left + bank * CELL}' y='{TOP + y * CELL}' width='{CELL}' "
                     f"height='{CELL}' fill='{colour}'/>")
    return parts


def draw():
    width, height = len(LAYOUTS) * (BANKS * CELL + GAP) + 2, TOP + SIDE * CELL + 26
    parts = [plot_ladder.text(10, 20, f"Where column {COLUMN} of a tile lies: across the 32 banks, down the 32 rows", 14,
                              weight="bold")]
    for i, (name, what, layout) in enumerate(LAYOUTS):
        left = 10 + i * (BANKS * CELL + GAP)
        parts += panel(left, name, what, layout)
        parts += [plot_ladder.text(left, height - 10, "bank 0", 9),
                  plot_ladder.text(left + BANKS * CELL, height - 10, "31", 9, "end")]
    return plot_ladder.svg(width, height, "Banks of a column in each layout of a tile", parts)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(draw())


if __name__ == "__main__":
    main()
