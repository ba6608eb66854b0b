// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sequence;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InvalidClassException;
import java.io.ObjectStreamConstants;
import java.io.StreamCorruptedException;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads what Java's serialization wrote for a key: a tuple of Scala's or CaffeOnSpark's Pair, of strings
 * and boxed values. It follows the stream's structure and loads no class: untrusted bytes run no
 * code, and Scala's version on the other side does not matter.
 */
final class SerializedKey {
  private static final String VALUES =
      "java\\.lang\\.(Number|Boolean|Byte|Short|Integer|Long|Float|Double)";
  private static final String TUPLES =
      "scala\\.Tuple[26]|com\\.yahoo\\.ml\\.j?caffe\\.(\\w+\\.)*Pair";
  private static final int DEEPEST = 4;

  private record Field(char type, String name) {}

  private record Shape(String name, List<Field> fields, Shape above) {}

  private final DataInputStream in;
  private final List<Object> seen = new ArrayList<>();

  private SerializedKey(byte[] bytes, int count) {
    in = new DataInputStream(new ByteArrayInputStream(bytes, 0, count));
  }

  /** The tuple's elements: strings, boxed values or null. */
  static Object[] elements(byte[] bytes, int count) throws IOException {
    SerializedKey key = new SerializedKey(bytes, count);
    if (key.in.readShort() != ObjectStreamConstants.STREAM_MAGIC
        || key.in.readShort() != ObjectStreamConstants.STREAM_VERSION) {
      throw new StreamCorruptedException("it is no serialized object");
    }
    if (key.content(0) instanceof Object[] elements) return elements;
    throw new StreamCorruptedException("it is no tuple or Pair");
  }

  private Object content(int depth) throws IOException {
    if (depth > DEEPEST) throw new StreamCorruptedException("its objects lie too deep");
    byte kind = in.readByte();
    return switch (kind) {
      case ObjectStreamConstants.TC_NULL -> null;
      case ObjectStreamConstants.TC_REFERENCE -> reference();
      case ObjectStreamConstants.TC_STRING -> remember(in.readUTF());
      case ObjectStreamConstants.TC_OBJECT -> object(depth);
      default -> throw new StreamCorruptedException("it holds something of kind " + kind);
    };
  }

  private Object object(int depth) throws IOException {
    Shape shape = shape();
    if (shape == null) throw new StreamCorruptedException("an object of no class");
    int place = seen.size();
    seen.add(null);
    List<Object> values = new ArrayList<>();
    addValues(shape, depth, values);
    Object result = shape.name().matches(VALUES) && values.size() == 1
        ? values.get(0) : values.toArray();
    seen.set(place, result);
    return result;
  }

  private void addValues(Shape shape, int depth, List<Object> values) throws IOException {
    if (shape.above() != null) addValues(shape.above(), depth, values);
    for (Field field : shape.fields()) {
      values.add(switch (field.type()) {
        case 'B' -> in.readByte();
        case 'C' -> in.readChar();
        case 'D' -> in.readDouble();
        case 'F' -> in.readFloat();
        case 'I' -> in.readInt();
        case 'J' -> in.readLong();
        case 'S' -> in.readShort();
        case 'Z' -> in.readBoolean();
        case 'L' -> content(depth + 1);
        default -> throw new StreamCorruptedException("a field of type " + field.type());
      });
    }
  }

  /** A class as the stream describes it; null where there is none. */
  private Shape shape() throws IOException {
    byte kind = in.readByte();
    if (kind == ObjectStreamConstants.TC_NULL) return null;
    if (kind == ObjectStreamConstants.TC_REFERENCE) {
      if (reference() instanceof Shape shape) return shape;
      throw new StreamCorruptedException("a class that is none");
    }
    if (kind != ObjectStreamConstants.TC_CLASSDESC) {
      throw new StreamCorruptedException("a class of kind " + kind);
    }
    String name = in.readUTF();
    if (!name.matches(VALUES) && !name.matches(TUPLES)) {
      throw new InvalidClassException(name, "keys hold tuples, Pairs, strings and numbers alone");
    }
    in.readLong(); // the version, which differs between Scala's
    int place = seen.size();
    seen.add(null);
    byte flags = in.readByte();
    int count = in.readUnsignedShort();
    List<Field> fields = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      char type = (char) in.readByte();
      fields.add(new Field(type, in.readUTF()));
      if (type == 'L') content(DEEPEST); // the name of its class
    }
    if (flags != ObjectStreamConstants.SC_SERIALIZABLE
        || in.readByte() != ObjectStreamConstants.TC_ENDBLOCKDATA) {
      throw new InvalidClassException(name, "it writes itself in a way of its own");
    }
    Shape shape = new Shape(name, fields, shape());
    seen.set(place, shape);
    return shape;
  }

  private Object reference() throws IOException {
    int place = in.readInt() - ObjectStreamConstants.baseWireHandle;
    if (place >= 0 && place < seen.size()) return seen.get(place);
    throw new StreamCorruptedException("it refers to what is not there");
  }

  private Object remember(Object value) {
    seen.add(value);
    return value;
  }
}
