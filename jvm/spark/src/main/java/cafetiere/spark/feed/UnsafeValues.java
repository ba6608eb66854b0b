// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.feed;

import cafetiere.core.score.CellType;
import cafetiere.spark.internal.UnsafeLayout;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Encodes what is more than a number in Spark's binary rows, by copying its memory. */
final class UnsafeValues {
  private static final int IMAGE_FIELDS = 6;
  private static final int SIZED_IMAGE_FIELDS = 3;
  private static final String REBUILD = ": make it by Vectors.sparse or Vectors.dense, or drop the row";

  private UnsafeValues() {}

  /** A string or binary value. */
  static void bytes(UnsafeRow row, int ordinal, Chunk out) {
    out.bytes(row.getBaseObject(), UnsafeLayout.offset(row, ordinal),
        UnsafeLayout.size(row, ordinal));
  }

  /** An array of `width`-byte numbers. */
  static void array(UnsafeRow row, int ordinal, int width, Chunk out) {
    long nullAt = UnsafeLayout.firstNull(row, ordinal);
    if (nullAt >= 0) throw nullElement(nullAt);
    out.bytes(row.getBaseObject(), UnsafeLayout.elementsOffset(row, ordinal),
        (long) UnsafeLayout.elements(row, ordinal) * width);
  }

  /** An array of decimals, as doubles. */
  static void decimals(UnsafeRow row, int ordinal, DecimalType type, Chunk out) {
    UnsafeArrayData decimals = row.getArray(ordinal);
    long to = out.payload((long) decimals.numElements() * Double.BYTES);
    for (int i = 0; i < decimals.numElements(); i++, to += Double.BYTES) {
      if (decimals.isNullAt(i)) throw nullElement(i);
      Platform.putDouble(null, to, decimals.getDecimal(i, type.precision(), type.scale()).toDouble());
    }
  }

  /** An array of texts, each followed by what ends it; nulls are left out. */
  static void texts(UnsafeRow row, int ordinal, Chunk out) {
    UnsafeArrayData texts = row.getArray(ordinal);
    long bytes = 0;
    for (int i = 0; i < texts.numElements(); i++) {
      if (!texts.isNullAt(i)) bytes += texts.getUTF8String(i).numBytes() + 1;
    }
    long to = out.payload(bytes);
    for (int i = 0; i < texts.numElements(); i++) {
      if (texts.isNullAt(i)) continue;
      UTF8String text = texts.getUTF8String(i);
      text.writeToMemory(null, to);
      for (long end = to + text.numBytes(); to < end; to++) {
        Platform.putByte(null, to, CellType.withinText(Platform.getByte(null, to)));
      }
      Platform.putByte(null, to++, CellType.textEnd());
    }
  }

  /** A Spark ML vector: its dense values, zeros included. Those of files are as who wrote them left them. */
  static void vector(UnsafeRow row, int ordinal, Chunk out) {
    UnsafeRow vector = UnsafeLayout.vector(row, ordinal);
    requirePart(vector, UnsafeLayout.VECTOR_VALUES, "values");
    if (UnsafeLayout.isDense(vector)) {
      array(vector, UnsafeLayout.VECTOR_VALUES, Double.BYTES, out);
      return;
    }
    int size = UnsafeLayout.length(vector);
    if (size < 0) throw new IllegalArgumentException("holds a sparse vector of size " + size + REBUILD);
    requirePart(vector, UnsafeLayout.VECTOR_INDICES, "indices");
    UnsafeArrayData indices = vector.getArray(UnsafeLayout.VECTOR_INDICES);
    UnsafeArrayData values = vector.getArray(UnsafeLayout.VECTOR_VALUES);
    int count = indices.numElements();
    if (values.numElements() != count) {
      throw new IllegalArgumentException("holds a sparse vector of " + count + " indices and "
          + values.numElements() + " values" + REBUILD);
    }
    long bytes = (long) size * Double.BYTES;
    long to = out.payload(bytes);
    Platform.setMemory(to, (byte) 0, bytes);
    for (int i = 0; i < count; i++) {
      int index = indices.getInt(i);
      if (index < 0 || index >= size) throw outside(index, size);
      Platform.putDouble(null, to + (long) index * Double.BYTES, values.getDouble(i));
    }
  }

  /** Refuses an array of a vector that is not there, or lacks an element. */
  private static void requirePart(UnsafeRow vector, int ordinal, String name) {
    if (vector.isNullAt(ordinal)) {
      throw new IllegalArgumentException("holds a vector whose " + name + " are null" + REBUILD);
    }
    long nullAt = UnsafeLayout.firstNull(vector, ordinal);
    if (nullAt >= 0) throw nullElement(nullAt);
  }

  private static IllegalArgumentException outside(int index, int size) {
    return new IllegalArgumentException("holds a sparse vector of size " + size + " with a value at index "
        + index + REBUILD);
  }

  /** An image of Spark's image source, planar. */
  static void image(UnsafeRow row, int ordinal, Chunk out) {
    UnsafeRow image = row.getStruct(ordinal, IMAGE_FIELDS);
    if (image.isNullAt(5)) {
      throw new IllegalArgumentException("holds an image without data: read with dropInvalid");
    }
    planar(image.getInt(1), image.getInt(2), image.getInt(3), image.getBinary(5), out);
  }

  /** An image of Spark's image source as a PGM or, in colour and without alpha, a PPM. */
  static void imageFile(UnsafeRow row, int ordinal, Chunk out) {
    UnsafeRow image = row.getStruct(ordinal, IMAGE_FIELDS);
    if (image.isNullAt(5) || image.getInt(1) < 1) {
      throw new IllegalArgumentException("holds an image without data: read with dropInvalid");
    }
    int height = image.getInt(1);
    int width = image.getInt(2);
    int channels = image.getInt(3);
    byte[] data = image.getBinary(5);
    requireSize(height, width, channels, data);
    int colors = channels == 1 ? 1 : 3;
    byte[] header = ("P" + (colors == 1 ? 5 : 6) + "\n" + width + " " + height + "\n255\n")
        .getBytes(StandardCharsets.US_ASCII);
    long to = out.payload(header.length + (long) height * width * colors);
    Platform.copyMemory(header, Platform.BYTE_ARRAY_OFFSET, null, to, header.length);
    to += header.length;
    for (int from = 0; from < data.length; from += channels) {
      for (int color = colors - 1; color >= 0; color--) {  // Spark has blue first
        Platform.putByte(null, to++, data[from + color]);
      }
    }
  }

  /** The bytes of an image file that stand first in a struct; the net's image has the size. */
  static void sizedImage(UnsafeRow row, int ordinal, Chunk out) {
    UnsafeRow image = row.getStruct(ordinal, SIZED_IMAGE_FIELDS);
    if (image.isNullAt(0)) throw new IllegalArgumentException("holds no image: drop the row");
    bytes(image, 0, out);
  }

  /** Writes height x width x channels bytes as channels x height x width, as Caffe's nets want. */
  static void planar(int height, int width, int channels, byte[] data, Chunk out) {
    int plane = height * width;
    requireSize(height, width, channels, data);
    long to = out.payload(data.length);
    for (int channel = 0; channel < channels; channel++) {
      for (int pixel = 0, from = channel; pixel < plane; pixel++, from += channels) {
        Platform.putByte(null, to++, data[from]);
      }
    }
  }

  private static void requireSize(int height, int width, int channels, byte[] data) {
    if (height >= 0 && width >= 0 && data.length == height * width * channels) return;
    throw new IllegalArgumentException("holds an image of " + data.length + " bytes that says it"
        + " is " + height + " x " + width + " x " + channels);
  }

  /** The error for a null within an array. */
  static IllegalArgumentException nullElement(long index) {
    return new IllegalArgumentException("holds a null at element " + index
        + ": fill it, or drop the row");
  }
}
