"""What a reader of a figure meets: its texts, none over another, none cut off."""

from itertools import combinations

from matplotlib.figure import Figure
from matplotlib.text import Text


def figures(draw):
    """The whole figures of a function that returns its first axes."""
    return lambda *args, **how: draw(*args, **how).figure


def drawn_texts(figure: Figure) -> list[Text]:
    """All texts that are drawn, tick labels outside the view left out."""
    if figure.stale:
        figure.canvas.draw()
    ticks, shown = set(), []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                ticks |= {tick.label1, tick.label2}
                shown += [tick.label1] if low <= tick.get_loc() <= high else []
    hidden = {text for axes in figure.axes if not axes.axison for axis in (axes.xaxis, axes.yaxis) for text in axis.findobj(Text)}
    shown += [text for text in figure.findobj(Text) if text not in ticks]
    return [text for text in shown if text.get_visible() and text.get_text().strip() and text not in hidden]


def assert_readable(figure: Figure) -> None:
    """No text covers another or leaves the figure."""
    texts = drawn_texts(figure)
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for (one, left), (two, right) in combinations(boxes, 2):
        over_x = min(left.x1, right.x1) - max(left.x0, right.x0)
        over_y = min(left.y1, right.y1) - max(left.y0, right.y0)
        assert over_x <= 0 or over_y <= 0, f"{one!r} and {two!r} overlap by {over_x:.1f} x {over_y:.1f} pixels"
    width, height = figure.canvas.get_width_height()
    for text, box in boxes:
        assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= -1, f"{text!r} is cut off: {box}"


def words(figure: Figure) -> list[str]:
    """The texts of a figure, their lines joined."""
    return [" ".join(text.get_text().split()) for text in drawn_texts(figure)]
