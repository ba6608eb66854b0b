// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.ml;

import static org.junit.jupiter.api.Assertions.assertEquals;

import cafetiere.spark.BothLines;
import cafetiere.spark.CaffeEstimator;
import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.ml.Transformer;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Models arrive by both of Spark's serializers, as parts of a broadcast or of a closure. */
@BothLines
class SerializersTest {
  private static final ClassTag<Transformer> ANY = ClassTag$.MODULE$.apply(Transformer.class);

  private static Dataset<Row> points;
  private static List<Transformer> models;

  @BeforeAll
  static void train() {
    SparkSession spark = TestImages.session();
    points = TestNets.points(spark, 64).selectExpr("*", "array(label, 1 - label) labels").cache();
    CaffeClassifier classifier = new CaffeClassifier().setFeaturesCol("features").setNumWorkers(1)
        .setMaxEpochs(1);
    models = List.of(
        new CaffeEstimator().setSolver(TestNets.SOLVER).setNet(TestNets.CLASSIFIER).setNumWorkers(1)
            .setMaxIter(2).fit(points),
        classifier.fit(points),
        classifier.setLabelCol("labels").fit(points),
        new CaffeRegressor().setFeaturesCol("features").setNumWorkers(1).setMaxEpochs(1).fit(points));
  }

  @Test
  void modelsAreSerializedByJava() {
    assertArrive(new JavaSerializer(new SparkConf()));
  }

  @Test
  void modelsAreSerializedByKryo() {
    assertArrive(new KryoSerializer(new SparkConf()));
  }

  private static void assertArrive(Serializer by) {
    SerializerInstance serializer = by.newInstance();
    for (Transformer model : models) {
      Transformer arrived = serializer.deserialize(serializer.serialize(model, ANY), ANY);
      assertEquals(model.uid(), arrived.uid());
      assertEquals(predictions(model), predictions(arrived), model.toString());
    }
  }

  private static List<Row> predictions(Transformer model) {
    return model.transform(points).select("id", "prediction").orderBy("id").collectAsList();
  }
}
