// SPDX-License-Identifier: Apache-2.0
package users

import com.yahoo.ml.caffe._
import org.apache.spark.SparkContext
import org.apache.spark.ml.classification.LogisticRegression
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.col

/** Programs as CaffeOnSpark's users have them. */
object Programs {
  /** A net's features as the input of Spark ML: the part of the rows whose class is found. */
  def pipeline(sc: SparkContext, args: Array[String]): Double = {
    val conf = new Config(sc, args)
    val caffe = new CaffeOnSpark(sc)
    val source = DataSource.getSource(conf, true).asInstanceOf[DataSource[Any, Any]]
    caffe.train(source)

    val features: DataFrame = caffe.features(DataSource.getSource(conf, false).asInstanceOf[DataSource[Any, Any]])
    val table = features
      .withColumn("Label", caffe.floatarray2doubleUDF(col(conf.label)))
      .withColumn("Feature", caffe.floatarray2doublevectorUDF(col(conf.features(0))))
    val classes = new LogisticRegression().setMaxIter(3).setLabelCol("Label").setFeaturesCol("Feature").fit(table)
    val found = classes.transform(table)
    found.filter(col("Label") === col("prediction")).count().toDouble / found.count()
  }

  /** The accuracy that training tells of its last test, and that of a test of its own. */
  def accuracies(sc: SparkContext, solver: String, model: String): (Long, Float, Double) = {
    val conf = new Config(sc)
    conf.protoFile = solver
    conf.modelPath = model
    conf.devices = 1
    conf.clusterSize = 2
    val caffe = new CaffeOnSpark(sc)
    val train = DataSource.getSource(conf, true).asInstanceOf[DataSource[Any, Any]]
    val held = DataSource.getSource(conf, false).asInstanceOf[DataSource[Any, Any]]
    val rounds = caffe.trainWithValidation(train, held)
    require(rounds.columns.toSeq == Seq("accuracy", "loss"), rounds.columns.mkString(","))
    val last = rounds.collect().last.getAs[scala.collection.Seq[Float]]("accuracy").head
    val result: Map[String, Seq[Double]] = caffe.test(held)
    (rounds.count(), last, result("accuracy").head)
  }
}
