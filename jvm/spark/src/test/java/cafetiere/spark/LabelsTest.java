// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.spark.ml.linalg.SQLDataTypes;
import org.apache.spark.ml.linalg.Vector;
import org.apache.spark.ml.linalg.Vectors;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Labels that are numbers of any kind, one or several: a net learns a matrix from them. */
class LabelsTest {
  private static final double[][] MATRIX = {{0.5, -1, 0.25}, {2, 0.125, -0.5}};
  private static final String SOLVER = "base_lr: 0.1 lr_policy: 'fixed' momentum: 0.9 max_iter: 200"
      + " random_seed: 7 snapshot_prefix: 'labels'";

  private static Dataset<Row> table;

  @BeforeAll
  static void makeTable() {
    SparkSession spark = TestImages.session();
    Random random = new Random(7);
    List<Row> rows = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      double[] x = random.doubles(3, -1, 1).toArray();
      double[] y = new double[MATRIX.length];
      for (int k = 0; k < y.length; k++) {
        for (int j = 0; j < x.length; j++) y[k] += MATRIX[k][j] * x[j];
      }
      List<Float> floats = List.of((float) y[0], (float) y[1]);
      rows.add(RowFactory.create(i, Vectors.dense(x), floats.toArray(), Vectors.dense(y), y[0]));
    }
    table = spark.createDataFrame(rows, new StructType()
        .add("id", DataTypes.IntegerType)
        .add("x", SQLDataTypes.VectorType())
        .add("floats", DataTypes.createArrayType(DataTypes.FloatType, false))
        .add("vector", SQLDataTypes.VectorType())
        .add("number", DataTypes.DoubleType)).cache();
  }

  @Test
  void vectorsAndNumbers() {
    List<Float> weights = learned(input(2), "vector", 2);
    assertEquals(weights, learned(input(2), "floats", 2), "floats are as exact as these vectors");
    assertNear(MATRIX, weights);
    assertNear(new double[][] {MATRIX[0]}, learned(input(1), "number", 1));
  }

  @Test
  void soInCaffeOnSparksLayer() {
    String layer = "layer { name: 'data' type: 'CoSData' top: 'x' top: 'y' cos_data_param {"
        + " batch_size: 20 top { name: 'x' type: FLOAT_ARRAY channels: 3 sample_num_axes: 1 }"
        + " top { name: 'floats' type: FLOAT_ARRAY channels: 2 sample_num_axes: 1 } } }";
    assertEquals(learned(input(2), "floats", 2), learned(layer, "floats", 2));
  }

  private static String input(int outputs) {
    return "layer { name: 'data' type: 'Input' top: 'x' top: 'y' input_param {"
        + " shape { dim: 20 dim: 3 } shape { dim: 20 dim: " + outputs + " } } }";
  }

  /** What the trained net makes of the three unit vectors: the columns of its matrix. */
  private static List<Float> learned(String layer, String label, int outputs) {
    String net = layer + " layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'ip'"
        + " inner_product_param { num_output: " + outputs + " bias_term: false"
        + " weight_filler { type: 'xavier' } } }"
        + " layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' top: 'loss' }";
    CaffeModel model = new CaffeEstimator().setSolver(SOLVER).setNet(net).setFeaturesCol("x")
        .setLabelCol(label).setNumWorkers(2).setShards(2).setOutputCols("ip").setPredictionCol("")
        .setIdCol("id").fit(table.select("id", "x", label));
    List<Row> units = new ArrayList<>();
    for (int j = 0; j < 3; j++) {
      Vector unit = Vectors.sparse(3, new int[] {j}, new double[] {1});
      units.add(RowFactory.create(j, unit));
    }
    Dataset<Row> rows = table.sparkSession().createDataFrame(units, new StructType()
        .add("id", DataTypes.IntegerType)
        .add("x", SQLDataTypes.VectorType()));
    List<Float> columns = new ArrayList<>();
    model.transform(rows).orderBy("id").select("ip").collectAsList()
        .forEach(row -> columns.addAll(row.getList(0)));
    return columns;
  }

  private static void assertNear(double[][] expected, List<Float> columns) {
    for (int k = 0; k < expected.length; k++) {
      for (int j = 0; j < expected[k].length; j++) {
        float found = columns.get(j * expected.length + k);
        assertTrue(Math.abs(found - expected[k][j]) < 1e-3, columns::toString);
      }
    }
  }
}
