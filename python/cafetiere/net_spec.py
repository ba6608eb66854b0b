# SPDX-License-Identifier: Apache-2.0
"""NetSpec: nets written as Python.

    from cafetiere import NetSpec, layers as L, params as P

    n = NetSpec()
    n.data, n.label = L.Data(source="train_lmdb", backend=P.Data.LMDB, batch_size=64, ntop=2)
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=dict(type="xavier"))
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.ip1 = L.InnerProduct(n.pool1, num_output=10)
    n.loss = L.SoftmaxWithLoss(n.ip1, n.label)
    print(n.to_proto())

Needs protobuf.
"""

from collections import Counter, OrderedDict
from functools import cache

from cafetiere.proto import caffe_pb2


@cache
def _own_params():
    """The fields of LayerParameter for types with a message of their own, by type."""
    return {
        field.message_type.name.removesuffix("Parameter"): field.name
        for field in caffe_pb2.LayerParameter.DESCRIPTOR.fields
        if field.message_type is not None and field.name.endswith("_param")
    }


def _assign(message, name, value):
    """Sets a field: dicts become messages, lists repeated fields; one value stands for a list."""
    field = message.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise AttributeError(f"{message.DESCRIPTOR.name} has no field '{name}'")
    target = getattr(message, name)
    if hasattr(target, "extend"):
        values = value if isinstance(value, (list, tuple)) else [value]
        if field.message_type is None:
            target.extend(values)
            return
        for item in values:
            _assign_all(target.add(), item)
    elif isinstance(value, dict):
        target.SetInParent()
        _assign_all(target, value)
    elif field.message_type is not None:
        target.CopyFrom(value)
    else:
        setattr(message, name, value)


def _assign_all(message, values):
    if not isinstance(values, dict):
        message.CopyFrom(values)
        return
    for name, value in values.items():
        _assign(message, name, value)


class Top:
    """One output of a Function, to be handed to other layers."""

    def __init__(self, fn, n):
        self.fn, self.n = fn, n

    def to_proto(self):
        """The NetParameter of all that this top needs, named automatically."""
        return to_proto(self)


class Function:
    """A layer to be: its type, inputs and parameters. `tops` are its outputs."""

    def __init__(self, type_name, inputs, params):
        for index, given in enumerate(inputs):
            if not isinstance(given, Top):
                raise TypeError(f"{type_name} input {index} is not a Top (type is {type(given)})")
        self.type_name, self.inputs, self.params = type_name, inputs, dict(params)
        self.ntop = self.params.pop("ntop", 1)
        self.in_place = self.params.pop("in_place", False)
        self.tops = tuple(Top(self, n) for n in range(self.ntop))

    def _to_layer(self, naming, bottoms):
        layer = caffe_pb2.LayerParameter()
        layer.type = self.type_name
        layer.bottom.extend(bottoms)
        layer.top.extend(bottoms if self.in_place else [naming.of(top) for top in self.tops])
        layer.name = naming.of(self.tops[0] if self.tops else self)
        own = _own_params().get(self.type_name)
        for name, value in self.params.items():
            target = layer
            if own and not name.endswith("param"):
                fields = type(getattr(layer, own)).DESCRIPTOR.fields_by_name
                target = getattr(layer, own) if name in fields else layer
            _assign(target, name, value)
        return layer


class _Naming:
    """Names of tops and functions: as given, else the type with a running number."""

    def __init__(self, given=None):
        self._names = dict(given or {})
        self._counts = Counter()

    def of(self, item):
        if item not in self._names:
            kind = (item.fn if isinstance(item, Top) else item).type_name
            self._counts[kind] += 1
            self._names[item] = f"{kind}{self._counts[kind]}"
        return self._names[item]


def _layers_of(items, naming):
    """The layers that tops and functions need, each once, inputs first."""
    layers = OrderedDict()

    def add(fn):
        if fn in layers:
            return
        for top in fn.inputs:
            add(top.fn)
        layers[fn] = fn._to_layer(naming, [layers[top.fn].top[top.n] for top in fn.inputs])

    for item in items:
        add(item.fn if isinstance(item, Top) else item)
    return layers.values()


def to_proto(*tops):
    """The NetParameter of all that the tops need, named automatically."""
    net = caffe_pb2.NetParameter()
    net.layer.extend(_layers_of(tops, _Naming()))
    return net


class NetSpec:
    """A net: tops by name, set as attributes or items, in the order of setting.

    A layer without tops (ntop=0) is set the same way, which names it.
    """

    def __init__(self):
        super().__setattr__("tops", OrderedDict())

    def __setattr__(self, name, value):
        """Names a top."""
        self.tops[name] = value

    def __getattr__(self, name):
        """The top of that name."""
        try:
            return super().__getattribute__("tops")[name]
        except KeyError:
            raise AttributeError(f"the net has no top '{name}'") from None

    __setitem__ = __setattr__

    def __getitem__(self, name):
        """The top of that name."""
        return self.tops[name]

    def __delitem__(self, name):
        """Forgets a top."""
        del self.tops[name]

    __delattr__ = __delitem__

    def keys(self):
        """The names of the tops."""
        return self.tops.keys()

    def vals(self):
        """The tops."""
        return self.tops.values()

    def update(self, other):
        """Adds all tops of another NetSpec."""
        self.tops.update(other.tops)

    def to_proto(self):
        """The NetParameter."""
        naming = _Naming({top: name for name, top in self.tops.items()})
        net = caffe_pb2.NetParameter()
        net.layer.extend(_layers_of(self.tops.values(), naming))
        return net


class Layers:
    """`layers.Type(*bottoms, **params)` makes a layer of any type: one top, a tuple of `ntop`, or
    for ntop=0 the Function itself.
    """

    def __getattr__(self, type_name):
        """The function that makes layers of this type."""
        if type_name.startswith("__"):
            raise AttributeError(type_name)

        def make(*inputs, **params):
            fn = Function(type_name, inputs, params)
            return fn if fn.ntop == 0 else fn.tops[0] if fn.ntop == 1 else fn.tops

        return make


class _Constants:
    """The enum values of one layer type's parameters."""

    def __init__(self, type_name):
        self._message = getattr(caffe_pb2, type_name + "Parameter")

    def __getattr__(self, name):
        return getattr(self._message, name)


class Parameters:
    """`params.Pooling.MAX`: the enum values of the layer types' parameters."""

    def __getattr__(self, type_name):
        """The constants of this type of layers."""
        if type_name.startswith("__"):
            raise AttributeError(type_name)
        return _Constants(type_name)


layers = Layers()
params = Parameters()
