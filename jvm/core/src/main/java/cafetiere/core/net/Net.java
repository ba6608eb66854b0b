// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.net;

import cafetiere.core.CafetiereException;
import cafetiere.core.Handle;
import cafetiere.core.NativeLibrary;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A net that runs layer by layer, as Caffe's does: every blob is there to be read and written between
 * layers, and any range of layers can run. A Trainer or Predictor is faster, as it compiles the net.
 */
public final class Net extends Handle {
  private final String name;
  private final List<Layer> layers = new ArrayList<>();
  private final List<String> blobNames;
  private final List<Integer> inputs;
  private final List<Integer> outputs;

  /** Makes a net; {@code options} is the JSON that cft_net_create describes. */
  public Net(String options) {
    this(options, null);
  }

  /** The same with somebody, unless null, who hears what the net says. */
  public Net(String options, NetListener listener) {
    this(create(options, listener));
  }

  /** A net of prototxt text, in phase "TRAIN" or "TEST". */
  public static Net of(String prototxt, String phase) {
    return new Net(NativeNet.options("text", prototxt, "phase", phase));
  }

  /** Takes over a native handle. */
  Net(long handle) {
    super(handle, NativeNet::destroy);
    Object[] parts = call(NativeNet::structure);
    name = NativeNet.text(parts[0]);
    for (Object layer : (Object[]) parts[1]) {
      Object[] fields = (Object[]) layer;
      layers.add(new Layer(NativeNet.text(fields[0]), NativeNet.text(fields[1]),
          numbers(fields[2]), numbers(fields[3]), numbers(fields[4])));
    }
    List<String> names = new ArrayList<>();
    for (Object blob : (Object[]) parts[2]) {
      names.add(NativeNet.text(blob));
    }
    blobNames = List.copyOf(names);
    inputs = numbers(parts[3]);
    outputs = numbers(parts[4]);
  }

  /** The net's name. */
  public String name() {
    return name;
  }

  /** The layers of this phase, in their order, those that split a blob for its readers included. */
  public List<Layer> layers() {
    return List.copyOf(layers);
  }

  /** The blobs' names, by number. */
  public List<String> blobNames() {
    return blobNames;
  }

  /** The numbers of the blobs that layers of type Input give. */
  public List<Integer> inputs() {
    return inputs;
  }

  /** The numbers of the blobs that no layer reads. */
  public List<Integer> outputs() {
    return outputs;
  }

  /** All of that as JSON, as cft_net_describe gives it. */
  public String describe() {
    return NativeNet.text(call(NativeNet::describe));
  }

  /** A blob by its number. */
  public Blob blob(int number) {
    return new Blob(call(net -> NativeNet.blob(net, false, number)));
  }

  /** A blob by its name; an error with the code NOT_FOUND where there is none. */
  public Blob blob(String blob) {
    return blob(numberOf(blob));
  }

  /** A parameter by its number. */
  public Blob param(int number) {
    return new Blob(call(net -> NativeNet.blob(net, true, number)));
  }

  /** Gives a blob another shape; the layers behind it follow when they run, or on reshape(). */
  public void reshape(String blob, long... shape) {
    int number = numberOf(blob);
    run(net -> NativeNet.reshapeBlob(net, number, shape));
  }

  /** Gives all blobs the shapes that follow from those of the inputs. */
  public void reshape() {
    run(NativeNet::reshape);
  }

  /** Runs all layers; the sum of their losses. */
  public float forward() {
    return forward(0, layers.size() - 1);
  }

  /** Runs the layers from one to another, both included. */
  public float forward(int from, int to) {
    return call(net -> NativeNet.forward(net, from, to));
  }

  /** Runs all layers backward: parameters' gradients are added to, blobs' are replaced. */
  public void backward() {
    backward(layers.size() - 1, 0);
  }

  /** Runs the layers from one down to another, both included. */
  public void backward(int from, int to) {
    run(net -> NativeNet.backward(net, from, to));
  }

  /** Sets the gradients of all parameters to zero. */
  public void clearParamDiffs() {
    run(NativeNet::clearParamDiffs);
  }

  /**
   * Feeds a layer of type MemoryData, over and over, from rows that lie in direct buffers of floats in
   * the machine's byte order. They are read when the net runs and kept until others take their place.
   *
   * @param labels one a row
   * @param rows a multiple of the layer's batch_size
   */
  public void setInput(String layer, ByteBuffer data, ByteBuffer labels, long rows) {
    for (Layer one : layers) {
      if (one.name().equals(layer) && one.tops().size() == 2) {
        long[] shape = blob(one.tops().get(0)).shape();
        long size = 1;
        for (int axis = 1; axis < shape.length; ++axis) {
          size *= shape[axis];
        }
        checkRoom("data", data, rows, size);
        checkRoom("labels", labels, rows, 1);
        run(net -> NativeNet.setInput(net, NativeNet.utf8(layer), data, labels, rows));
        return;
      }
    }
    throw new CafetiereException(
        CafetiereException.Code.NOT_FOUND, "the net has no MemoryData layer '" + layer + "'");
  }

  /** Copies weights by layer name from a .caffemodel or its HDF5 form. */
  public void copyFrom(String path) {
    run(net -> NativeNet.copyFrom(net, NativeNet.utf8(path)));
  }

  /** Has this net use the weights of another from now on, by layer name; they stay as long as it. */
  public void shareWith(Net other) {
    run(net -> runWith(other, theirs -> NativeNet.shareWith(net, theirs)));
  }

  /** Writes the weights, in the HDF5 form where the path ends with ".h5". */
  public void save(String path) {
    run(net -> NativeNet.save(net, NativeNet.utf8(path), path.endsWith(".h5")));
  }

  private int numberOf(String blob) {
    int number = blobNames.indexOf(blob);
    if (number < 0) {
      throw new CafetiereException(
          CafetiereException.Code.NOT_FOUND,
          "the net has no blob '" + blob + "'; it has " + String.join(" ", blobNames));
    }
    return number;
  }

  private static void checkRoom(String what, ByteBuffer buffer, long rows, long size) {
    if (!buffer.isDirect()) {
      throw new IllegalArgumentException(what + " is no direct buffer");
    }
    if (rows < 1 || rows > buffer.capacity() / Float.BYTES / Math.max(1, size)) {
      throw new IllegalArgumentException(
          what + " holds " + buffer.capacity() / Float.BYTES + " floats, not " + rows + " rows of "
              + size);
    }
  }

  private static List<Integer> numbers(Object array) {
    List<Integer> list = new ArrayList<>();
    for (int number : (int[]) array) {
      list.add(number);
    }
    return List.copyOf(list);
  }

  private static long create(String options, NetListener listener) {
    NativeLibrary.load();
    return NativeNet.create(NativeNet.utf8(options), listener);
  }
}
