# SPDX-License-Identifier: Apache-2.0
"""Models of tables in folders, as TableModel.save() or Spark writes them."""

import bz2
import gzip
import json
import os
import pathlib
import tempfile
import zlib

from cafetiere._cells import TYPES

_SEVERAL = {"CATEGORY": "texts", "NUMBER": "numbers"}  # kinds of several values in a cell
_DECOMPRESS = {".gz": gzip.decompress, ".deflate": zlib.decompress, ".bz2": bz2.decompress}


def read(folder):
    """The arguments of the TableModel in a folder."""
    folder = pathlib.Path(folder)
    if (folder / "net" / "metadata").is_dir():
        return _read_of_spark(folder)
    if (folder / "nets").is_dir():
        raise ValueError(
            f"the model in {folder} has a net for each key: save that of a key, modelOf(key)"
        )
    if not (folder / "table.json").exists():
        raise FileNotFoundError(f"there is no model of a table in {folder}")
    told = _json(folder / "table.json")
    return {
        "net": (folder / "net.prototxt").read_text(encoding="utf-8"),
        "weights": (folder / "model.caffemodel").read_bytes(),
        "types": _types(told, folder),
        "label": told.get("label", ""),
        "quantiles": _numbers(told, "quantiles", folder),
        "thresholds": _numbers(told, "thresholds", folder),
    }


def _text(file):
    """The text of a file, compressed or not."""
    if file.suffix in ("", ".txt", ".json"):
        return file.read_text(encoding="utf-8")
    if file.suffix not in _DECOMPRESS:
        raise ValueError(
            f"{file} is compressed as {file.suffix}, and Python without Spark reads "
            f"{', '.join(_DECOMPRESS)}: save the model again with "
            "mapreduce.output.fileoutputformat.compress=false"
        )
    return _DECOMPRESS[file.suffix](file.read_bytes()).decode()


def _json(path):
    """The object in a file."""
    try:
        told = json.loads(_text(path))
    except (json.JSONDecodeError, UnicodeDecodeError):
        told = None
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(told, dict):
        raise ValueError(f"{path} is no JSON object")
    return told


def _numbers(told, name, folder):
    """Those of a list that may be missing."""
    numbers = told.get(name)
    if numbers is None:
        return ()
    if not isinstance(numbers, list):
        raise ValueError(
            f"the model in {folder} has {json.dumps(numbers)} as its {name}, which is no list"
        )
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise ValueError(
                f"the model in {folder} has {json.dumps(number)} among its {name}, which is no "
                "number"
            )
    return numbers


def _types(told, folder):
    """How the columns of a model are read, by name, as its table.json says."""
    types = told.get("types")
    if isinstance(types, dict) and all(isinstance(kind, str) for kind in types.values()):
        return types
    raise ValueError(
        f'{folder / "table.json"} has no "types" of the model\'s columns: save the model again'
    )


def _params(folder):
    """The params that Spark saved: those that were set, and the defaults of the others."""
    file = next((folder / "metadata").glob("part-*"), None)
    if file is None:
        raise FileNotFoundError(f"there is no model of a table in {folder}")
    told = _json(file)
    return {**told.get("defaultParamMap", {}), **told.get("paramMap", {})}


def _read_of_spark(folder):
    """A classifier or regressor in a folder, whose net is a model of its own within."""
    from google.protobuf import text_format  # only who has such a model needs it

    from cafetiere.proto import caffe_pb2

    params, text = _params(folder), _params(folder / "net").get("net")
    if not isinstance(text, str):
        raise ValueError(f"the model in {folder} names no net")
    net = text_format.Parse(text, caffe_pb2.NetParameter())
    net.ClearField("state")  # predict() gives its own
    types, labels = {}, []
    for layer in net.layer:
        for name, top in zip(layer.top, layer.table_data_param.top):
            if name == "label":
                labels = [column.name for column in top.column]
            for column in () if top.target else top.column:
                kind = type(column).Kind.Name(column.kind)
                several = _SEVERAL.get(kind) if column.size > 1 else None
                types[column.name] = several or TYPES.get(kind, "string")
    weights = folder / "net" / "data" / "model.caffemodel"
    if not weights.exists():
        weights = weights.with_name("model.caffemodel.h5")  # where it is large
    return {
        "net": text_format.MessageToString(net),
        "weights": weights.read_bytes(),  # of either form
        "types": types,
        "label": labels[0] if len(labels) == 1 else labels,
        "quantiles": _numbers(params, "quantiles", folder),
        "thresholds": _numbers(params, "thresholds", folder),
    }


def write(folder, files):
    """Writes files, bytes by name, into a folder: all, or none where one cannot be written."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as new:
        for name, content in files.items():
            (pathlib.Path(new) / name).write_bytes(content)
        for name in files:
            os.replace(pathlib.Path(new) / name, folder / name)
