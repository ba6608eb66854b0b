// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.sql;

import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/** {@code predict(path, features [, output])} for columns of any types, on the driver. */
final class PredictFunction implements UnboundFunction {
  @Override
  public String name() {
    return "predict";
  }

  @Override
  public String description() {
    return "predict(path, features [, output]): what a saved CaffeModel computes for a row. path: of"
        + " the folder that model.write().save() wrote; features: an array of numbers or a vector, the"
        + " net's input, or a struct of a table's columns; output: a blob of the net, by default the model's"
        + " first output.";
  }

  @Override
  public BoundFunction bind(StructType arguments) {
    StructField[] fields = arguments.fields();
    boolean named = fields.length == 3 && isText(fields[2].dataType());
    if (!(fields.length == 2 || named) || !isText(fields[0].dataType())) {
      throw new UnsupportedOperationException(
          "predict takes the path of a saved model, the features and perhaps an output's name, as in"
              + " predict('hdfs:/models/lenet', features, 'prob') or, for a model of a table,"
              + " predict('hdfs:/models/visitors', struct(age, city), 'probability')");
    }
    DataType features = fields[1].dataType();
    if (features instanceof StructType row) return new PredictRow(row, named, conf());
    boolean isVector = features.equals(SQLDataTypes.VectorType());
    if (!isVector && !isNumbers(features)) {
      throw new UnsupportedOperationException("predict cannot take features of type "
          + features.catalogString() + ": give an array of numbers or a vector, or, to a model of a"
          + " table, a struct of its columns, as in struct(age, city)");
    }
    return new Predict(isVector, named, conf());
  }

  private static SerializableConfiguration conf() {
    return new SerializableConfiguration(
        SparkSession.active().sparkContext().hadoopConfiguration());
  }

  /** A NULL that has no type fits in every place. */
  private static boolean isText(DataType type) {
    return type instanceof StringType || type instanceof NullType;
  }

  private static boolean isNumbers(DataType type) {
    return type instanceof NullType
        || type instanceof ArrayType array && array.elementType() instanceof NumericType;
  }
}
