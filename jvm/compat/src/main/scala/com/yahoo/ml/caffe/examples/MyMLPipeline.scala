// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.examples

import com.yahoo.ml.caffe.{CaffeOnSpark, Config, DataSource}
import org.apache.spark.ml.classification.{LogisticRegression, LogisticRegressionModel}
import org.apache.spark.{SparkConf, SparkContext}

/** CaffeOnSpark's example: a net is trained, the first blob of `-features` is the input of a logistic regression of
  * Spark ML for the blob of `-label`, and the regression is saved at `-output`.
  */
object MyMLPipeline {
  def main(args: Array[String]): Unit = {
    val sc = SparkContext.getOrCreate(new SparkConf().setIfMissing("spark.app.name", "MyMLPipeline"))
    try run(sc, args)
    finally sc.stop()
  }

  private[caffe] def run(sc: SparkContext, args: Array[String]): LogisticRegressionModel = {
    val conf = new Config(sc, args)
    val caffe = new CaffeOnSpark(sc)
    caffe.train(DataSource.getSource(conf, true))
    val features = caffe.features(DataSource.getSource(conf, false))
    val table = features
      .withColumn("Label", caffe.floatarray2doubleUDF(features(conf.label)))
      .withColumn("Feature", caffe.floatarray2doublevectorUDF(features(conf.features(0))))
    val model = new LogisticRegression().setLabelCol("Label").setFeaturesCol("Feature").fit(table)
    model.write.overwrite().save(conf.outputPath)
    model
  }
}
