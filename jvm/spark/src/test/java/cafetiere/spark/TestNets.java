// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.core.Rows;
import cafetiere.core.Trainer;
import cafetiere.spark.feed.FeedSchema;
import cafetiere.spark.feed.RowEncoder;
import cafetiere.spark.internal.SparkInternals;
import cafetiere.spark.plan.Epochs;
import cafetiere.spark.plan.SolverSettings;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.run.TrainingResult;
import cafetiere.spark.util.ModelPart;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** Small nets and tables: two classes of points in space, told apart by their first coordinate. */
public final class TestNets {
  static final int FLOATS = 3;
  static final int BATCH = 8;

  public static final String SOLVER = """
      base_lr: 0.5
      lr_policy: "fixed"
      momentum: 0.9
      max_iter: 60
      random_seed: 7
      """;

  public static final String CLASSIFIER = data(BATCH, FLOATS) + """
      layer { name: "hidden" type: "InnerProduct" bottom: "data" top: "hidden"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
      layer { name: "relu" type: "ReLU" bottom: "hidden" top: "hidden" }
      layer { name: "score" type: "InnerProduct" bottom: "hidden" top: "score"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
      """;

  private TestNets() {}

  /** A data layer for rows of `floats` numbers and a label. */
  public static String data(int batch, int floats) {
    return "name: \"test\" layer { name: \"data\" type: \"MemoryData\" top: \"data\" top: \"label\""
        + " memory_data_param { batch_size: " + batch + " channels: " + floats
        + " height: 1 width: 1 } }\n";
  }

  /** A table of points: id, features (array of float), label. */
  public static Dataset<Row> points(SparkSession spark, int count) {
    Random random = new Random(1);
    List<Row> rows = IntStream.range(0, count).mapToObj(i -> point(i, random))
        .collect(Collectors.toList());
    StructType schema = new StructType()
        .add("id", DataTypes.LongType, false)
        .add("features", DataTypes.createArrayType(DataTypes.FloatType, false), false)
        .add("label", DataTypes.IntegerType, false);
    return spark.createDataFrame(rows, schema);
  }

  /** A trained classifier, made in this JVM without Spark. */
  public static CaffeModel model(Dataset<Row> points) {
    FeedSchema schema = FeedSchema.of(points.schema(),
        List.of(new FeedSchema.Input("data", "features"), new FeedSchema.Input("label", "label")),
        "id");
    TrainingPlan plan = new TrainingPlan(
        SOLVER, CLASSIFIER, schema, 1, 1, 1, 1, 0, Epochs.NONE, 1, "", 0, null, null, "", 6000, false,
        "ethernet", SolverSettings.NONE, false, false);
    try (Rows rows = new Rows(schema.toJson().toString());
        Trainer trainer = new Trainer(plan.trainerOptions(0, Path.of(""), false), new Silent())) {
      try (RowEncoder encoder = new RowEncoder(schema, rows::append)) {
        SparkInternals.rows(schema.select(points)).toJavaRDD().map(InternalRow::copy).collect()
            .forEach(encoder::add);
        encoder.flush();
      }
      trainer.run(rows);
      return new CaffeModel("model", new TrainingResult(
          ModelPart.of(trainer.model()), ModelPart.of(trainer.state()),
          TrainingSummary.fromJson(trainer.result()), "")).setNet(CLASSIFIER);
    }
  }

  /** What an estimator plans for a table, for tests of other packages. */
  public static TrainingPlan plan(CaffeEstimator estimator, Dataset<Row> table) {
    return estimator.plan(table);
  }

  private static Row point(long id, Random random) {
    float x = random.nextFloat() - 0.5f;
    List<Float> features = Stream.of(x, random.nextFloat() - 0.5f, random.nextFloat() - 0.5f)
        .collect(Collectors.toList());
    return RowFactory.create(id, features.toArray(new Float[0]), x > 0 ? 1 : 0);
  }

  /** Hears nothing. */
  private static final class Silent implements Trainer.Listener {
    @Override
    public void event(String json) {}

    @Override
    public void checkpoint(String json, ByteBuffer model, ByteBuffer state) {}
  }
}
