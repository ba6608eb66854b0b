# SPDX-License-Identifier: Apache-2.0
"""Draws nets as graphs: layers as boxes, blobs as octagons.

    python -m cafetiere.draw NET.prototxt IMAGE [--rankdir LR] [--phase TRAIN] [--display_lrm]

The drawing itself is done by Graphviz's program `dot`; IMAGE may end in .dot or .raw for its input.
Needs protobuf.
"""

import argparse
import shutil
import subprocess

from cafetiere.proto import caffe_pb2

LAYER_STYLE = {"shape": "record", "fillcolor": "#6495ED", "style": "filled"}
NEURON_STYLE = {"shape": "record", "fillcolor": "#90EE90", "style": "filled"}
BLOB_STYLE = {"shape": "octagon", "fillcolor": "#E0E0E0", "style": "filled"}
_COLORS = {"Convolution": "#FF5050", "Deconvolution": "#FF5050", "Pooling": "#FF9900"}
_COLORS["InnerProduct"] = "#CC33FF"


def get_pooling_types_dict():
    """The names of the pooling methods by number."""
    return {number: name for name, number in caffe_pb2.PoolingParameter.PoolMethod.items()}


def get_edge_label(layer):
    """What is written at the edge from a layer: the batch size or the number of outputs."""
    if layer.type == "Data":
        return f"Batch {layer.data_param.batch_size}"
    if layer.type in ("Convolution", "Deconvolution"):
        return str(layer.convolution_param.num_output)
    if layer.type == "InnerProduct":
        return str(layer.inner_product_param.num_output)
    return ""


def get_layer_lr_mult(layer):
    """The lr_mult of the weights of a layer that has weights, else None."""
    if layer.type not in ("Convolution", "Deconvolution", "InnerProduct"):
        return None
    return layer.param[0].lr_mult if layer.param else 1.0


def _first(values, default):
    return values[0] if len(values) else default


def get_layer_label(layer, rankdir, display_lrm=False):
    """The text in a layer's box; on one line when the graph runs from top to bottom."""
    parts = [layer.name, f"({layer.type})"]
    if layer.type in ("Convolution", "Deconvolution"):
        p = layer.convolution_param
        parts += [
            f"kernel size: {_first(p.kernel_size, p.kernel_h or 1)}",
            f"stride: {_first(p.stride, p.stride_h or 1)}",
            f"pad: {_first(p.pad, p.pad_h)}",
        ]
    elif layer.type == "Pooling":
        p = layer.pooling_param
        parts[1] = f"({get_pooling_types_dict()[p.pool]} {layer.type})"
        parts += [f"kernel size: {p.kernel_size}", f"stride: {p.stride}", f"pad: {p.pad}"]
    rate = get_layer_lr_mult(layer) if display_lrm else None
    if rate is not None:
        parts.append(f"lr mult: {rate:g}")
    return (" " if rankdir in ("TB", "BT") else r"\n").join(parts)


def choose_color_by_layertype(layertype):
    """The fill colour of a layer's box."""
    return _COLORS.get(layertype, "#6495ED")


def _in_phase(layer, phase):
    """Whether a layer takes part in a phase; None stands for all phases."""
    if phase is None:
        return True
    if layer.include:
        return any(not rule.HasField("phase") or rule.phase == phase for rule in layer.include)
    return not any(rule.HasField("phase") and rule.phase == phase for rule in layer.exclude)


def _graph(net, label_edges, phase, display_lrm, rankdir):
    """Nodes and edges: {name: attributes} and (from, to, label)."""
    nodes, edges = {}, []
    for layer in net.layer:
        if not _in_phase(layer, phase):
            continue
        name = f"{layer.name}_{layer.type}"
        in_place = list(layer.bottom) == list(layer.top) and len(layer.bottom) == 1
        style = dict(NEURON_STYLE if in_place else LAYER_STYLE)
        if not in_place:
            style["fillcolor"] = choose_color_by_layertype(layer.type)
        nodes[name] = {"label": get_layer_label(layer, rankdir, display_lrm), **style}
        for bottom in layer.bottom:
            nodes[bottom + "_blob"] = {"label": bottom, **BLOB_STYLE}
            edges.append((bottom + "_blob", name, ""))
        for top in layer.top:
            nodes[top + "_blob"] = {"label": top, **BLOB_STYLE}
            edges.append((name, top + "_blob", get_edge_label(layer) if label_edges else ""))
    return nodes, edges


def get_pydot_graph(caffe_net, rankdir, label_edges=True, phase=None, display_lrm=False):
    """The graph of a NetParameter as an object of pydot, which must be installed."""
    import pydot

    nodes, edges = _graph(caffe_net, label_edges, phase, display_lrm, rankdir)
    graph = pydot.Dot(caffe_net.name or "Net", graph_type="digraph", rankdir=rankdir)
    for name, attributes in nodes.items():
        graph.add_node(pydot.Node(f'"{name}"', **attributes))
    for start, end, label in edges:
        graph.add_edge(pydot.Edge(f'"{start}"', f'"{end}"', label=f'"{label}"'))
    return graph


def get_dot(caffe_net, rankdir="LR", label_edges=True, phase=None, display_lrm=False):
    """The graph of a NetParameter in Graphviz's language."""

    def quoted(text):
        return '"' + str(text).replace('"', r"\"") + '"'

    nodes, edges = _graph(caffe_net, label_edges, phase, display_lrm, rankdir)
    lines = [f"digraph {quoted(caffe_net.name or 'Net')} {{", f"rankdir={rankdir};"]
    for name, attributes in nodes.items():
        inner = ", ".join(f"{key}={quoted(value)}" for key, value in attributes.items())
        lines.append(f"{quoted(name)} [{inner}];")
    lines += [f"{quoted(a)} -> {quoted(b)} [label={quoted(label)}];" for a, b, label in edges]
    return "\n".join([*lines, "}", ""])


def draw_net(caffe_net, rankdir, ext="png", phase=None, display_lrm=False):
    """The drawing of a NetParameter in the format `ext`; "dot" and "raw" need no Graphviz."""
    source = get_dot(caffe_net, rankdir, phase=phase, display_lrm=display_lrm).encode()
    if ext in ("dot", "raw"):
        return source
    if not shutil.which("dot"):
        raise RuntimeError("the program 'dot' is not installed: install graphviz, or draw to .dot")
    return subprocess.run(["dot", f"-T{ext}"], input=source, capture_output=True, check=True).stdout


def draw_net_to_file(caffe_net, filename, rankdir="LR", phase=None, display_lrm=False):
    """Draws a NetParameter to a file in the format that its ending names."""
    drawing = draw_net(caffe_net, rankdir, filename.rpartition(".")[2], phase, display_lrm)
    with open(filename, "wb") as file:
        file.write(drawing)


def main(arguments=None):
    """The command line: see the module."""
    from google.protobuf import text_format

    parser = argparse.ArgumentParser(prog="cafetiere.draw", description="Draws a net.")
    parser.add_argument("input_net_proto_file", help="the net, a prototxt")
    parser.add_argument("output_image_file", help="the drawing; its ending names the format")
    parser.add_argument("--rankdir", default="LR", choices=["LR", "TB", "BT", "RL"])
    parser.add_argument("--phase", default="ALL", choices=["TRAIN", "TEST", "ALL"])
    parser.add_argument("--display_lrm", action="store_true", help="show lr_mult")
    options = parser.parse_args(arguments)
    with open(options.input_net_proto_file) as file:
        net = text_format.Parse(file.read(), caffe_pb2.NetParameter(), allow_unknown_field=True)
    phase = None if options.phase == "ALL" else getattr(caffe_pb2, options.phase)
    draw_net_to_file(net, options.output_image_file, options.rankdir, phase, options.display_lrm)


if __name__ == "__main__":
    main()
