# SPDX-License-Identifier: Apache-2.0
"""Tables of images and drawings of nets, for notebooks."""

import base64
import html
import io

from google.protobuf import text_format

import cafetiere.draw
from cafetiere.proto import caffe_pb2


class Html(str):
    """HTML that a notebook shows."""

    def _repr_html_(self):
        return str(self)


def show_df(df, nrows=10):
    """A table of id, label and grey image of the first rows; needs Pillow.

    The columns are those of ImageDataFrame: id, label, height, width, data.
    """
    needed = ("id", "label", "height", "width", "data")
    missing = [name for name in needed if name not in df.columns]
    if missing:
        raise ValueError(
            f"the table has no column {' and no '.join(missing)}: show_df needs"
            f" {', '.join(needed)}, and the image's pixels in data"
        )
    lines = ["<table><tr><th>Index</th><th>Label</th><th>Image</th></tr>"]
    for row in df.take(nrows):
        cells = [html.escape(str(row["id"])), html.escape(str(row["label"])), _image(row)]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return Html("".join(lines) + "</table>")


def show_network(input_net_proto_file, rankdir):
    """The drawing of a net; ``rankdir``: "LR" or "TB". Needs Graphviz."""
    net = caffe_pb2.NetParameter()
    with open(input_net_proto_file, encoding="utf-8") as file:
        text_format.Merge(file.read(), net)
    return Html(f"<body>{_tag(cafetiere.draw.draw_net(net, rankdir))}</body>")


def _image(row):
    from PIL import Image

    size = (row["width"], row["height"])
    png = io.BytesIO()
    Image.frombytes("L", size, bytes(row["data"])).save(png, format="png")
    return _tag(png.getvalue())


def _tag(png):
    return f"<img src='data:image/png;base64,{base64.b64encode(png).decode()}' />"
