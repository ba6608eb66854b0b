// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.score.CellType;
import cafetiere.core.score.TableScorer;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/** {@code predict} for a struct of a table's columns, as they are; a NULL within it is a gap. */
final class PredictRow extends Prediction<TableScorer> {
  private static final long serialVersionUID = 1L;

  private final StructType row;

  /** Of such rows; {@code named}: whether the output is the third argument. */
  PredictRow(StructType row, boolean named, SerializableConfiguration conf) {
    super(named, conf);
    this.row = row;
    columns();  // what cannot be a cell is told on the driver
  }

  @Override
  DataType features() {
    return row;
  }

  @Override
  public String canonicalName() {
    return canonicalName(row.catalogString());
  }

  @Override
  TableScorer open(SavedNet net, SerializableConfiguration conf) {
    return SavedNets.ofTables().scorer(row.catalogString() + " " + net.version(conf.value()),
        () -> net.open(row, columns(), conf.value()));
  }

  @Override
  public ArrayData produceResult(InternalRow arguments) {
    return result(arguments);
  }

  @Override
  float[] score(TableScorer scorer, InternalRow arguments) {
    InternalRow cells = arguments.getStruct(1, row.size());
    List<Object> values = new ArrayList<>(row.size());
    for (int i = 0; i < row.size(); i++) {
      values.add(cells.isNullAt(i) ? null : value(cells, i, row.fields()[i].dataType()));
    }
    return scorer.score(values);
  }

  private Map<String, CellType> columns() {
    Map<String, CellType> columns = new LinkedHashMap<>();
    for (StructField field : row.fields()) columns.put(field.name(), type(field));
    return columns;
  }

  private static CellType type(StructField field) {
    DataType type = field.dataType();
    if (type.equals(DataTypes.BooleanType)) return CellType.BOOLEAN;
    if (type.equals(DataTypes.LongType)) return CellType.LONG;
    if (type.equals(DataTypes.FloatType)) return CellType.FLOAT;
    if (type.equals(DataTypes.DoubleType) || type instanceof DecimalType) return CellType.DOUBLE;
    if (type.equals(DataTypes.StringType)) return CellType.TEXT;
    if (type.equals(DataTypes.DateType)) return CellType.DATE;
    if (List.of(DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType).contains(type)) {
      return CellType.INT;
    }
    if (List.of(DataTypes.TimestampType, DataTypes.TimestampNTZType).contains(type)) {
      return CellType.TIMESTAMP;
    }
    if (type.equals(SQLDataTypes.VectorType())) return CellType.DOUBLES;
    DataType element = type instanceof ArrayType array ? array.elementType() : DataTypes.NullType;
    if (element.equals(DataTypes.StringType)) return CellType.TEXTS;
    if (element.equals(DataTypes.FloatType)) return CellType.FLOATS;
    if (element instanceof NumericType) return CellType.DOUBLES;
    throw new UnsupportedOperationException("predict cannot take column '" + field.name()
        + "' of type " + type.catalogString() + ": cast it to a number, a string, a date, a timestamp, a"
        + " vector, or an array of numbers or strings");
  }

  private static Object value(InternalRow cells, int i, DataType type) {
    if (type.equals(DataTypes.StringType)) return cells.getUTF8String(i).toString();
    if (type.equals(DataTypes.DateType)) return LocalDate.ofEpochDay(cells.getInt(i));
    if (type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType)) {
      return Instant.EPOCH.plus(cells.getLong(i), ChronoUnit.MICROS);
    }
    if (type instanceof DecimalType decimal) {
      return cells.getDecimal(i, decimal.precision(), decimal.scale()).toDouble();
    }
    if (type instanceof ArrayType array) return values(cells.getArray(i), array.elementType());
    if (type.equals(SQLDataTypes.VectorType())) return vector(cells, i).toArray();
    return cells.get(i, type);
  }

  /** Those of a cell; of texts, some may be null. */
  private static Object values(ArrayData array, DataType type) {
    if (type.equals(DataTypes.StringType)) {
      return Arrays.stream(array.toObjectArray(type)).map(text -> Objects.toString(text, null)).toList();
    }
    whole(array);
    if (type.equals(DataTypes.FloatType)) return array.toFloatArray();
    if (type.equals(DataTypes.DoubleType)) return array.toDoubleArray();
    return Arrays.stream(array.toObjectArray(type)).mapToDouble(PredictRow::number).toArray();
  }

  private static double number(Object value) {
    return value instanceof Decimal decimal ? decimal.toDouble() : ((Number) value).doubleValue();
  }
}
