// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.score.CellType;
import cafetiere.core.score.TableScorer;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.util.SerializableConfiguration;

/** {@code predict} for a struct of a table's columns, as they are. Each task has a copy. */
final class PredictRow implements ScalarFunction<ArrayData> {
  private static final long serialVersionUID = 1L;
  private static final int VECTOR_FIELDS = 4;

  private final StructType row;
  private final boolean named;
  private final SerializableConfiguration conf;
  private transient SavedNet net;
  private transient TableScorer scorer;

  /** Of such rows; {@code named}: whether the output is the third argument. */
  PredictRow(StructType row, boolean named, SerializableConfiguration conf) {
    this.row = row;
    this.named = named;
    this.conf = conf;
    columns();  // what cannot be a cell is told on the driver
  }

  @Override
  public DataType[] inputTypes() {
    Stream<DataType> types = Stream.of(DataTypes.StringType, row);
    return (named ? Stream.concat(types, Stream.of(DataTypes.StringType)) : types)
        .toArray(DataType[]::new);
  }

  @Override
  public DataType resultType() {
    return DataTypes.createArrayType(DataTypes.FloatType, false);
  }

  @Override
  public String name() {
    return "predict";
  }

  @Override
  public String canonicalName() {
    return "cafetiere.predict(" + row.catalogString() + ", " + named + ")";
  }

  @Override
  public String toString() {
    return name();
  }

  /** NULL for an argument that is NULL; a NULL within the struct is a gap. */
  @Override
  public ArrayData produceResult(InternalRow arguments) {
    if (arguments.isNullAt(0) || arguments.isNullAt(1) || named && arguments.isNullAt(2)) return null;
    TableScorer of = scorer(arguments.getUTF8String(0).toString(),
        named ? arguments.getUTF8String(2).toString() : "");
    InternalRow cells = arguments.getStruct(1, row.size());
    List<Object> values = new ArrayList<>(row.size());
    for (int i = 0; i < row.size(); i++) {
      values.add(cells.isNullAt(i) ? null : value(cells, i, row.fields()[i].dataType()));
    }
    return UnsafeArrayData.fromPrimitiveArray(of.score(values));
  }

  private TableScorer scorer(String path, String output) {
    if (net == null || !net.is(path, output)) {
      net = new SavedNet(path, output);
      SavedNet found = net;
      scorer = SavedNets.ofTables().scorer(
          row.catalogString() + " " + found.version(conf.value()),
          () -> found.open(columns(), conf.value()));
    }
    return scorer;
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
    boolean isDoubles =
        type instanceof ArrayType array && array.elementType().equals(DataTypes.DoubleType);
    if (isDoubles || type.equals(SQLDataTypes.VectorType())) return CellType.DOUBLES;
    throw new UnsupportedOperationException("predict cannot take column '" + field.name()
        + "' of type " + type.catalogString()
        + ": cast it to a number, a string, a date, a timestamp, an array of double or a vector");
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
    if (type instanceof ArrayType) return cells.getArray(i).toDoubleArray();
    if (type.equals(SQLDataTypes.VectorType())) {
      InternalRow vector = cells.getStruct(i, VECTOR_FIELDS);
      return ((Vector) ((UserDefinedType<?>) type).deserialize(vector)).toArray();
    }
    return cells.get(i, type);
  }
}
