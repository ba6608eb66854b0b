// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.score.Scorer;
import java.util.stream.Stream;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.util.SerializableConfiguration;

/** {@code predict} for columns of known types. Each task has a copy, and with it a scorer. */
final class Predict implements ScalarFunction<ArrayData> {
  private static final long serialVersionUID = 1L;
  private static final int VECTOR_FIELDS = 4;

  private final boolean isVector;
  private final boolean named;
  private final SerializableConfiguration conf;
  private transient SavedNet net;
  private transient Scorer scorer;

  /** {@code named}: whether the output is the third argument. */
  Predict(boolean isVector, boolean named, SerializableConfiguration conf) {
    this.isVector = isVector;
    this.named = named;
    this.conf = conf;
  }

  @Override
  public DataType[] inputTypes() {
    DataType features =
        isVector ? SQLDataTypes.VectorType() : DataTypes.createArrayType(DataTypes.FloatType);
    Stream<DataType> types = Stream.of(DataTypes.StringType, features);
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
    return "cafetiere.predict(" + isVector + ", " + named + ")";
  }

  @Override
  public String toString() {
    return name();
  }

  /** NULL for an argument that is NULL. */
  @Override
  public ArrayData produceResult(InternalRow arguments) {
    if (arguments.isNullAt(0) || arguments.isNullAt(1) || named && arguments.isNullAt(2)) return null;
    Scorer of = scorer(arguments.getUTF8String(0).toString(),
        named ? arguments.getUTF8String(2).toString() : "");
    float[] score = new float[of.size()];
    of.score(features(arguments), score);
    return UnsafeArrayData.fromPrimitiveArray(score);
  }

  /** The one of the last row, as a rule. */
  private Scorer scorer(String path, String output) {
    if (net == null || !net.is(path, output)) {
      net = new SavedNet(path, output);
      SavedNet found = net;
      scorer = SavedNets.ofProcess()
          .scorer(found.version(conf.value()), () -> found.open(conf.value()));
    }
    return scorer;
  }

  private float[] features(InternalRow arguments) {
    if (isVector) return floats(arguments.getStruct(1, VECTOR_FIELDS));
    ArrayData values = arguments.getArray(1);
    for (int i = 0; i < values.numElements(); i++) {
      if (values.isNullAt(i)) {
        throw new IllegalArgumentException("the features that predict is to score hold a NULL at element "
            + i + ": fill it, or leave the row out with WHERE");
      }
    }
    return values.toFloatArray();
  }

  private static float[] floats(InternalRow row) {
    Vector vector = (Vector) ((UserDefinedType<?>) SQLDataTypes.VectorType()).deserialize(row);
    float[] floats = new float[vector.size()];
    for (int i = 0; i < floats.length; i++) floats[i] = (float) vector.apply(i);
    return floats;
  }
}
