"""Documents of gates, written by hand: GatingML 2.0 and FlowJo workspaces, as small as FlowKit takes them."""

from __future__ import annotations

STANDARD = "http://www.isac-net.org/std/Gating-ML/v2.0/"
SPACES = f'xmlns:gating="{STANDARD}gating" xmlns:data-type="{STANDARD}datatypes" xmlns:transforms="{STANDARD}transformations"'


def dimension(channel, low=None, high=None, compensation=' gating:compensation-ref="uncompensated"'):
    """One side of a rectangle."""
    ends = "".join(f' gating:{end}="{value}"' for end, value in (("min", low), ("max", high)) if value is not None)
    inner = f'<data-type:fcs-dimension data-type:name="{channel}"/>'
    return f"<gating:dimension{compensation}{ends}>{inner}</gating:dimension>"


def rectangle(name, *sides, parent=None):
    """A rectangle gate of GatingML."""
    within = f' gating:parent_id="{parent}"' if parent else ""
    return f'<gating:RectangleGate gating:id="{name}"{within}>{"".join(sides)}</gating:RectangleGate>'


def quadrants(name, channel, value, low, high):
    """A quadrant gate of GatingML along one channel: two quadrants."""
    cut = f'<data-type:fcs-dimension data-type:name="{channel}"/><gating:value>{value}</gating:value>'
    divider = f'<gating:divider gating:id="cut" gating:compensation-ref="uncompensated">{cut}</gating:divider>'
    parts = "".join(
        f'<gating:Quadrant gating:id="{part}"><gating:position gating:divider_ref="cut" gating:location="{at}"/></gating:Quadrant>'
        for part, at in ((low, value - 1), (high, value + 1))
    )
    return f'<gating:QuadrantGate gating:id="{name}">{divider}{parts}</gating:QuadrantGate>'


def gating_ml(*gates, before=""):
    """A document of GatingML."""
    return f'<?xml version="1.0" encoding="UTF-8"?>{before}<gating:Gating-ML {SPACES}>{"".join(gates)}</gating:Gating-ML>'


def population(name, channel, low, high, *inner):
    """A population of a workspace: a rectangle along one channel, with others inside."""
    side = dimension(channel, low, high, compensation="")
    gate = f"<Gate><gating:RectangleGate>{side}</gating:RectangleGate></Gate>"
    within = f"<Subpopulations>{''.join(inner)}</Subpopulations>" if inner else ""
    return f'<Population name="{name}" owningGroup="">{gate}{within}</Population>'


def workspace(samples, channels, file_names=None):
    """A FlowJo workspace: populations by sample, linear scales for all channels; ``file_names`` are the $FIL of samples."""
    scales = "".join(
        f'<transforms:linear transforms:minRange="0" transforms:maxRange="262144"><data-type:parameter data-type:name="{each}"/>'
        "</transforms:linear>"
        for each in channels
    )
    listed, references = [], []
    for number, (name, populations) in enumerate(samples.items(), 1):
        keyword = f'<Keyword name="$FIL" value="{(file_names or {}).get(name, name)}"/>'
        inner = f"<Subpopulations>{''.join(populations)}</Subpopulations>" if populations else ""
        listed.append(
            f'<Sample><DataSet uri="file:/elsewhere/{name}" sampleID="{number}"/><Transformations>{scales}</Transformations>'
            f'<Keywords>{keyword}</Keywords><SampleNode name="{name}" sampleID="{number}">{inner}</SampleNode></Sample>'
        )
        references.append(f'<SampleRef sampleID="{number}"/>')
    group = f'<GroupNode name="All Samples"><Group><SampleRefs>{"".join(references)}</SampleRefs></Group></GroupNode>'
    body = f"<Groups>{group}</Groups><SampleList>{''.join(listed)}</SampleList>"
    return f'<?xml version="1.0" encoding="UTF-8"?><Workspace version="20.0" flowJoVersion="10.8.1" {SPACES}>{body}</Workspace>'
