// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.lmdb;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The columns that a record has: those of CaffeOnSpark's ImageDataFrame, or its bytes. */
public enum LmdbColumn {
  /** The key as text. */
  ID(DataTypes.StringType, false, record -> UTF8String.fromBytes(bytes(record.key()))),
  LABEL(DataTypes.IntegerType, false, record -> record.datum().label()),
  CHANNELS(DataTypes.IntegerType, false, record -> record.datum().channels()),
  HEIGHT(DataTypes.IntegerType, false, record -> record.datum().height()),
  WIDTH(DataTypes.IntegerType, false, record -> record.datum().width()),
  ENCODED(DataTypes.BooleanType, false, record -> record.datum().encoded()),
  /** Pixels or an image file; null where the record has numbers. */
  DATA(DataTypes.BinaryType, true, record -> record.datum().pixels(record.isByPixel())),
  /** Numbers, channel by channel; null where the record has none. */
  FLOAT_DATA(DataTypes.createArrayType(DataTypes.FloatType, false), true,
      record -> numbers(record.datum().floats())),
  KEY(DataTypes.BinaryType, false, record -> bytes(record.key())),
  VALUE(DataTypes.BinaryType, false, record -> bytes(record.value()));

  /** What a row is made of. */
  interface Record {
    ByteBuffer key();

    ByteBuffer value();

    /** The value as Caffe's message. */
    Datum datum();

    boolean isByPixel();
  }

  /** Gives a column's value in Spark's own form. */
  interface Getter {
    Object of(Record record);
  }

  private static final List<LmdbColumn> OF_RECORDS = List.of(KEY, VALUE);
  private static final List<LmdbColumn> OF_IMAGES =
      List.of(ID, LABEL, CHANNELS, HEIGHT, WIDTH, ENCODED, DATA, FLOAT_DATA);

  private final DataType type;
  private final boolean isNullable;
  private final Getter getter;

  LmdbColumn(DataType type, boolean isNullable, Getter getter) {
    this.type = type;
    this.isNullable = isNullable;
    this.getter = getter;
  }

  /** The columns of a table. */
  public static StructType schema(boolean raw) {
    StructType schema = new StructType();
    for (LmdbColumn column : raw ? OF_RECORDS : OF_IMAGES) {
      schema = schema.add(column.title(), column.type, column.isNullable);
    }
    return schema;
  }

  /** The column of that name. */
  static LmdbColumn of(String title) {
    return valueOf(title.toUpperCase(Locale.ROOT));
  }

  /** Its name in tables. */
  String title() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Whether a record's key is enough for it. */
  boolean isOfKey() {
    return this == ID || this == KEY;
  }

  /** Its value of a record. */
  Object of(Record record) {
    return getter.of(record);
  }

  /** A copy of what is left in a buffer, which stays as it is. */
  public static byte[] bytes(ByteBuffer view) {
    byte[] copy = new byte[view.remaining()];
    view.duplicate().get(copy);
    return copy;
  }

  private static Object numbers(float[] values) {
    return values.length == 0 ? null : UnsafeArrayData.fromPrimitiveArray(values);
  }
}
