// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.score;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.util.List;

/** What the cells of a table's column are, as the table was that a net was trained on. */
public enum CellType {
  /** {@link Boolean}. */
  BOOLEAN("u8"),
  /** Whole numbers of 8 to 32 bits. */
  INT("i32"),
  /** Whole numbers of 64 bits. */
  LONG("i64"),
  /** Numbers of 32 bits with a fraction. */
  FLOAT("f32"),
  /** Other numbers. */
  DOUBLE("f64"),
  /** {@code double[]}, as vectors are. */
  DOUBLES("f64"),
  /** {@code float[]}. */
  FLOATS("f32"),
  /** {@link String}. */
  TEXT("string"),
  /** A {@code List} of {@link String}, of which nulls are left out. */
  TEXTS("string"),
  /** {@link LocalDate}. */
  DATE("i32"),
  /** {@link Instant}. */
  TIMESTAMP("i64"),
  /** {@code byte[]}: the bytes of an image file. */
  IMAGE("u8");

  private static final long MICROS_PER_SECOND = 1_000_000;
  private static final int NANOS_PER_MICRO = 1_000;
  private static final byte TEXT_END = 0x1f;

  private final String engineName;

  CellType(String engineName) {
    this.engineName = engineName;
  }

  String engineName() {
    return engineName;
  }

  /** Bytes that a cell takes with its length, at most. */
  int room(Object cell) {
    if (cell instanceof String text) return Integer.BYTES + 3 * text.length();
    if (cell instanceof List<?> texts) return texts.stream().mapToInt(this::room).sum() + Integer.BYTES;
    if (cell instanceof double[] values) return Integer.BYTES + Double.BYTES * values.length;
    if (cell instanceof float[] values) return Integer.BYTES + Float.BYTES * values.length;
    if (cell instanceof byte[] file) return Integer.BYTES + file.length;
    return Integer.BYTES + Double.BYTES;
  }

  /**
   * Appends a cell, of which null is a gap; a ClassCastException where it is of another type, and an
   * ArithmeticException where this type does not hold its value.
   */
  void put(Object cell, ByteBuffer to) {
    int start = to.position();
    to.putInt(0);
    if (cell != null) putValue(cell, to);
    to.putInt(start, to.position() - start - Integer.BYTES);
  }

  private void putValue(Object cell, ByteBuffer to) {
    switch (this) {
      case BOOLEAN -> to.put((byte) ((Boolean) cell ? 1 : 0));
      case INT -> to.putInt(Math.toIntExact(whole((Number) cell)));
      case LONG -> to.putLong(whole((Number) cell));
      case FLOAT -> to.putFloat(((Number) cell).floatValue());
      case DOUBLE -> to.putDouble(((Number) cell).doubleValue());
      case DOUBLES -> {
        for (double value : (double[]) cell) to.putDouble(value);
      }
      case FLOATS -> {
        for (float value : (float[]) cell) to.putFloat(value);
      }
      case TEXT -> putText((String) cell, to);
      case TEXTS -> {
        for (Object text : (List<?>) cell) {
          if (text == null) continue;
          putTextOfSeveral((String) text, to);
        }
      }
      case DATE -> to.putInt(Math.toIntExact(((LocalDate) cell).toEpochDay()));
      case TIMESTAMP -> to.putLong(micros((Instant) cell));
      case IMAGE -> to.put((byte[]) cell);
      default -> throw new IllegalStateException(name());
    }
  }

  /** The value of a number without a fraction. */
  private static long whole(Number number) {
    if (number instanceof Integer || number instanceof Long) return number.longValue();
    if (number instanceof Short || number instanceof Byte) return number.longValue();
    if (number instanceof Double || number instanceof Float) return whole(number.doubleValue());
    return new BigDecimal(number.toString()).longValueExact();
  }

  /** A cast to long makes the nearest one of what is none; 2^63 is that of the largest. */
  private static long whole(double number) {
    long whole = (long) number;
    if (whole == number && whole != Long.MAX_VALUE) return whole;
    throw new ArithmeticException(number + " is no long");
  }

  /** Not by ChronoUnit.MICROS, which counts nanoseconds in Java 17: a long holds those of 1677 to 2262. */
  private static long micros(Instant time) {
    return Math.addExact(
        Math.multiplyExact(time.getEpochSecond(), MICROS_PER_SECOND), time.getNano() / NANOS_PER_MICRO);
  }

  private static void putTextOfSeveral(String text, ByteBuffer to) {
    int start = to.position();
    putText(text, to);
    for (int i = start; i < to.position(); i++) to.put(i, withinText(to.get(i)));
    to.put(TEXT_END);
  }

  /** What ends each text of several, as the engine's kTextEnd. */
  public static byte textEnd() {
    return TEXT_END;
  }

  /** A byte of a text among several: a blank where it would end the text. */
  public static byte withinText(byte unit) {
    return unit == TEXT_END ? (byte) ' ' : unit;
  }

  /** ASCII needs no array of bytes. */
  private static void putText(String text, ByteBuffer to) {
    int start = to.position();
    for (int i = 0; i < text.length(); i++) {
      char unit = text.charAt(i);
      if (unit > 0x7f) {
        to.position(start);
        to.put(text.getBytes(StandardCharsets.UTF_8));
        return;
      }
      to.put((byte) unit);
    }
  }
}
