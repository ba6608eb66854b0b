// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

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

/**
 * {@code predict} for arguments of known types: a path, what is to be scored, and perhaps the name of an
 * output. Each task has a copy, and with it a scorer.
 *
 * @param <S> what scores
 */
abstract class Prediction<S> implements ScalarFunction<ArrayData> {
  private static final long serialVersionUID = 1L;
  private static final int VECTOR_FIELDS = 4;

  private final boolean named;
  private final SerializableConfiguration conf;
  private transient SavedNet net;
  private transient S scorer;

  /** {@code named}: whether the output is the third argument. */
  Prediction(boolean named, SerializableConfiguration conf) {
    this.named = named;
    this.conf = conf;
  }

  /** The type of what is to be scored. */
  abstract DataType features();

  /** The process's own for a net. */
  abstract S open(SavedNet net, SerializableConfiguration conf);

  /** Scores the second argument. */
  abstract float[] score(S scorer, InternalRow arguments);

  @Override
  public DataType[] inputTypes() {
    Stream<DataType> types = Stream.of(DataTypes.StringType, features());
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

  /** {@code features} tells those of different types apart. */
  String canonicalName(Object features) {
    return "cafetiere.predict(" + features + ", " + named + ")";
  }

  /** Spark takes calls of equal functions with equal arguments for one. */
  @Override
  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass()
        && ((Prediction<?>) other).canonicalName().equals(canonicalName());
  }

  @Override
  public int hashCode() {
    return canonicalName().hashCode();
  }

  @Override
  public String toString() {
    return name();
  }

  /**
   * The result for a row, NULL for an argument that is NULL. Spark wants produceResult declared by the
   * function's own class.
   */
  final ArrayData result(InternalRow arguments) {
    if (arguments.isNullAt(0) || arguments.isNullAt(1) || named && arguments.isNullAt(2)) return null;
    S of = scorer(arguments.getUTF8String(0).toString(),
        named ? arguments.getUTF8String(2).toString() : "");
    return UnsafeArrayData.fromPrimitiveArray(score(of, arguments));
  }

  /** The one of the last row, as a rule. */
  private S scorer(String path, String output) {
    if (net == null || !net.is(path, output)) {
      SavedNet found = SavedNet.find(path, output, conf.value());
      scorer = open(found, conf);
      net = found; // not before: Spark may call again what has failed
    }
    return scorer;
  }

  /** An array without NULLs, which would be read as zeros. */
  static ArrayData whole(ArrayData values) {
    for (int i = 0; i < values.numElements(); i++) {
      if (values.isNullAt(i)) {
        throw new IllegalArgumentException("the features that predict is to score hold a NULL at element "
            + i + ": fill it, or leave the row out with WHERE");
      }
    }
    return values;
  }

  static Vector vector(InternalRow row, int place) {
    InternalRow fields = row.getStruct(place, VECTOR_FIELDS);
    return (Vector) ((UserDefinedType<?>) SQLDataTypes.VectorType()).deserialize(fields);
  }
}
