// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.preprocess;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.CaffeModel;
import cafetiere.spark.PreflightException;
import cafetiere.spark.TestImages;
import cafetiere.spark.sql.Functions;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.ml.Pipeline;
import org.apache.spark.ml.PipelineModel;
import org.apache.spark.ml.PipelineStage;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A function of the user's changes rows before training and before prediction. */
class PreprocessorTest {
  private static final int ROWS = 128;

  /** Turns pixels upside down, in executors alone. */
  public static final class Negative implements Preprocessor {
    @Override
    public StructType schema(StructType given) {
      return new StructType().add("id", DataTypes.LongType).add("pixels", DataTypes.BinaryType)
          .add("label", DataTypes.IntegerType);
    }

    @Override
    public Row apply(Row row) {
      if (SparkEnv.get().executorId().equals("driver")) throw new IllegalStateException("driver");
      byte[] pixels = row.<byte[]>getAs("image").clone();
      for (int i = 0; i < pixels.length; i++) pixels[i] = (byte) (255 - (pixels[i] & 0xff));
      return RowFactory.create(row.<Long>getAs("id"), pixels, row.<Integer>getAs("label"));
    }
  }

  /** The same, but for rows to train on. */
  public static final class TestNegative implements Preprocessor {
    private final Negative negative = new Negative();

    @Override
    public StructType schema(StructType given) {
      return negative.schema(given);
    }

    @Override
    public Row apply(Row row) {
      return negative.apply(row);
    }

    @Override
    public Row applyToTrain(Row row) {
      return RowFactory.create(
          row.<Long>getAs("id"), row.<byte[]>getAs("image"), row.<Integer>getAs("label"));
    }
  }

  @Test
  void rowsAreChangedBeforeTrainingAndPrediction(@TempDir Path dir) throws Exception {
    SparkSession spark = TestImages.session();
    Dataset<Row> images = TestImages.images(spark, ROWS);
    spark.udf().register("negative", (byte[] given) -> {
      byte[] pixels = given.clone();
      for (int i = 0; i < pixels.length; i++) pixels[i] = (byte) (255 - (pixels[i] & 0xff));
      return pixels;
    }, DataTypes.BinaryType);
    Dataset<Row> byHand = images.selectExpr("id", "label", "negative(image) pixels", "image");
    CaffeModel wanted = estimator("").fit(byHand);
    CaffeModel model = estimator(Negative.class.getName()).fit(images);
    assertArrayEquals(wanted.weights(), model.weights());

    String path = dir.resolve("model").toUri().toString();
    model.write().save(path);
    CaffeModel loaded = CaffeModel.load(path);
    assertEquals(Negative.class.getName(), loaded.getPreprocessor());
    Dataset<Row> predicted = loaded.transform(images);
    assertEquals(List.of("id", "image", "label", "ip2", "prediction"),
        List.of(predicted.columns()));
    assertEquals(outputs(wanted.transform(byHand)), outputs(predicted));

    assertSqlRefuses(spark, path);

    byte[] plain = estimator(TestNegative.class.getName()).fit(images).weights();
    assertArrayEquals(estimator("").setFeaturesCol("image").fit(images).weights(), plain);
    assertFalse(Arrays.equals(plain, model.weights()));
  }

  @Test
  void aPipelineChecksTheColumnsThatItMakes() {
    Dataset<Row> images = TestImages.images(TestImages.session(), ROWS);
    CaffeEstimator estimator = estimator(Negative.class.getName());
    PipelineModel fitted = new Pipeline().setStages(new PipelineStage[] {estimator}).fit(images);
    assertArrayEquals(estimator.fit(images).weights(), ((CaffeModel) fitted.stages()[0]).weights());
    assertEquals(fitted.transform(images).schema(), fitted.transformSchema(images.schema()));
  }

  @Test
  void whatIsNoPreprocessorIsRefused() {
    Dataset<Row> images = TestImages.images(TestImages.session(), 16);
    for (String name : new String[] {"no.such.Class", "java.lang.String"}) {
      String told = assertThrows(PreflightException.class, () -> estimator(name).fit(images))
          .getMessage();
      assertTrue(told.contains("preprocessor names " + name), told);
    }
  }

  /** A function of a query sees the net's input and not the row. */
  private static void assertSqlRefuses(SparkSession spark, String path) {
    spark.conf().set("spark.sql.catalog.cafetiere", Functions.class.getName());
    for (String features : List.of("array_repeat(0, 784)", "struct(1 AS age)")) {
      Throwable error = assertThrows(Exception.class, () -> spark.sql(
          "SELECT cafetiere.predict('" + path + "', " + features + ")").collectAsList());
      StringBuilder told = new StringBuilder();
      for (; error != null; error = error.getCause()) told.append(error.getMessage()).append('\n');
      assertTrue(told.toString().contains("preprocessor " + Negative.class.getName()), told.toString());
    }
  }

  private static List<Row> outputs(Dataset<Row> table) {
    return table.select("id", "ip2", "prediction").orderBy("id").collectAsList();
  }

  private static CaffeEstimator estimator(String preprocessor) {
    return new CaffeEstimator().setSolver(TestImages.solver(3)).setNet(TestImages.lenet())
        .setFeaturesCol("pixels").setIdCol("id").setNumWorkers(2).setOutputCols("ip2")
        .setPreprocessor(preprocessor);
  }
}
