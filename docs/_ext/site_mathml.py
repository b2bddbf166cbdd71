"""Formulas as MathML, which browsers draw by themselves: no script, no font, nothing to fetch. The conversion is docutils' own.

A formula that it does not know is a warning, and so ends the build.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

log = logging.getLogger(__name__)

# browsers take it for an operator that stretches, with room on both sides
FENCE = re.compile(r'<mo(?: stretchy="false"| class="math\w+")?>([‖|⟨⟩])</mo>')


def _mathml(node: nodes.Element, as_block: bool) -> str:
    try:
        return FENCE.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        log.warning("cannot set the formula %r: %s", node.astext(), error, location=node)
        return ""


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    if node["number"]:
        self.body.append(f'<span class="formula-number">({node["number"]})</span>')
    self.body.append(_mathml(node, as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
