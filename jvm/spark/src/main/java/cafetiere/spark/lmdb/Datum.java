// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * Caffe's message for an image in a database. Its wire format is read and written here, since the
 * protobuf of a Spark program is of any version.
 *
 * @param data pixels channel by channel, or the bytes of an image file; empty if there are none
 * @param floats numbers, where there are no bytes
 */
public record Datum(int channels, int height, int width, ByteBuffer data, int label, float[] floats,
    boolean encoded) {
  private static final int VARINT = 0;
  private static final int EIGHT_BYTES = 1;
  private static final int BYTES = 2;
  private static final int FOUR_BYTES = 5;

  private static final int CHANNELS = 1;
  private static final int HEIGHT = 2;
  private static final int WIDTH = 3;
  private static final int DATA = 4;
  private static final int LABEL = 5;
  private static final int FLOATS = 6;
  private static final int ENCODED = 7;
  private static final int FIELDS = 8;

  /** Reads a message; null if the bytes are none. What it holds are views of {@code value}. */
  public static Datum parse(ByteBuffer value) {
    try {
      return read(value.slice().order(ByteOrder.LITTLE_ENDIAN));
    } catch (BufferUnderflowException | IllegalArgumentException e) {
      return null; // IllegalArgumentException: beyond the end, or what no message has
    }
  }

  private static Datum read(ByteBuffer in) {
    int[] numbers = new int[FIELDS];
    ByteBuffer data = ByteBuffer.allocate(0);
    float[] floats = {};
    int count = 0;
    while (in.hasRemaining()) {
      long tag = varint(in);
      long field = tag >>> 3;
      int wire = (int) (tag & 7);
      if (wire == VARINT) {
        long number = varint(in);
        if (field < FIELDS) numbers[(int) field] = (int) number;
      } else if (field == DATA && wire == BYTES) {
        data = bytes(in);
      } else if (field == FLOATS && (wire == FOUR_BYTES || wire == BYTES)) {
        int more = wire == BYTES ? (int) varint(in) / Float.BYTES : 1;
        if (more < 0 || more > in.remaining() / Float.BYTES) throw new BufferUnderflowException();
        if (count + more > floats.length) floats = grown(floats, count + more, in);
        for (int i = 0; i < more; i++) floats[count++] = in.getFloat();
      } else {
        skip(in, wire);
      }
    }
    return new Datum(numbers[CHANNELS], numbers[HEIGHT], numbers[WIDTH], data, numbers[LABEL],
        Arrays.copyOf(floats, count), numbers[ENCODED] != 0);
  }

  /** With room for what is likely to follow: a number takes five bytes or, packed, four. */
  private static float[] grown(float[] floats, int least, ByteBuffer in) {
    return Arrays.copyOf(floats, least + in.remaining() / (1 + Float.BYTES));
  }

  private static long varint(ByteBuffer in) {
    long number = 0;
    for (int shift = 0; shift < Long.SIZE; shift += 7) {
      byte part = in.get();
      number |= (part & 0x7fL) << shift;
      if (part >= 0) return number;
    }
    throw new IllegalArgumentException("a number without an end");
  }

  private static ByteBuffer bytes(ByteBuffer in) {
    long size = varint(in);
    if (size < 0 || size > in.remaining()) throw new BufferUnderflowException();
    ByteBuffer view = in.slice().limit((int) size);
    in.position(in.position() + (int) size);
    return view;
  }

  private static void skip(ByteBuffer in, int wire) {
    switch (wire) {
      case EIGHT_BYTES -> in.getLong();
      case FOUR_BYTES -> in.getInt();
      case BYTES -> bytes(in);
      default -> throw new IllegalArgumentException("a field of no kind");
    }
  }

  /** The message's bytes. */
  byte[] encode() {
    int most = FIELDS * 12 + data.remaining() + floats.length * (1 + Float.BYTES);
    ByteBuffer out = ByteBuffer.allocate(most).order(ByteOrder.LITTLE_ENDIAN);
    number(out, CHANNELS, channels);
    number(out, HEIGHT, height);
    number(out, WIDTH, width);
    if (data.hasRemaining()) {
      tag(out, DATA, BYTES);
      varint(out, data.remaining());
      out.put(data.duplicate());
    }
    number(out, LABEL, label);
    for (float value : floats) {
      tag(out, FLOATS, FOUR_BYTES);
      out.putFloat(value);
    }
    number(out, ENCODED, encoded ? 1 : 0);
    return Arrays.copyOf(out.array(), out.position());
  }

  private static void number(ByteBuffer out, int field, int value) {
    tag(out, field, VARINT);
    varint(out, value);
  }

  private static void tag(ByteBuffer out, int field, int wire) {
    out.put((byte) (field << 3 | wire));
  }

  private static void varint(ByteBuffer out, long value) {
    long rest = value;
    for (; (rest & ~0x7fL) != 0; rest >>>= 7) out.put((byte) (rest & 0x7f | 0x80));
    out.put((byte) rest);
  }

  /** What is wrong with its sizes; "" if nothing is. */
  public String fault() {
    long wanted = (long) channels * height * width;
    int there = data.hasRemaining() ? data.remaining() : floats.length;
    if (encoded || there == wanted && channels >= 0 && height >= 0) return "";
    return "has " + there + " values, and its sizes (channels " + channels + ", height " + height
        + ", width " + width + ") ask for " + wanted;
  }

  /** The bytes of its image, pixel by pixel if {@code isByPixel} and it is none of a file's. */
  public byte[] pixels(boolean isByPixel) {
    if (!data.hasRemaining()) return null;
    byte[] bytes = new byte[data.remaining()];
    data.duplicate().get(bytes);
    return isByPixel && !encoded ? transposed(bytes, channels) : bytes;
  }

  /** {@code rows} lines of equal length as columns: planes as pixels, and back by their number. */
  static byte[] transposed(byte[] bytes, int rows) {
    if (rows <= 1 || rows == bytes.length) return bytes;
    byte[] result = new byte[bytes.length];
    int columns = bytes.length / rows;
    for (int row = 0; row < rows; row++) {
      for (int i = 0; i < columns; i++) result[i * rows + row] = bytes[row * columns + i];
    }
    return result;
  }
}
