// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import cafetiere.core.score.Scorer;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.util.SerializableConfiguration;

/** {@code predict} for an array of numbers or a vector. */
final class Predict extends Prediction<Scorer> {
  private static final long serialVersionUID = 1L;

  private final boolean isVector;

  /** {@code named}: whether the output is the third argument. */
  Predict(boolean isVector, boolean named, SerializableConfiguration conf) {
    super(named, conf);
    this.isVector = isVector;
  }

  @Override
  DataType features() {
    return isVector ? SQLDataTypes.VectorType() : DataTypes.createArrayType(DataTypes.FloatType);
  }

  @Override
  public String canonicalName() {
    return canonicalName(isVector);
  }

  @Override
  Scorer open(SavedNet net, SerializableConfiguration conf) {
    return SavedNets.ofProcess().scorer(net.version(conf.value()), () -> net.open(conf.value()));
  }

  @Override
  public ArrayData produceResult(InternalRow arguments) {
    return result(arguments);
  }

  @Override
  float[] score(Scorer scorer, InternalRow arguments) {
    float[] score = new float[scorer.size()];
    float[] features = isVector ? floats(vector(arguments, 1)) : whole(arguments.getArray(1)).toFloatArray();
    scorer.score(features, score);
    return score;
  }

  private static float[] floats(Vector vector) {
    float[] floats = new float[vector.size()];
    for (int i = 0; i < floats.length; i++) floats[i] = (float) vector.apply(i);
    return floats;
  }
}
