// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.immutable.ListMap

import cafetiere.spark.{CaffeModel, PreflightException, Submit}
import org.apache.hadoop.fs.Path
import org.apache.spark.ml.linalg.{Vector, Vectors}
import org.apache.spark.sql.expressions.UserDefinedFunction
import org.apache.spark.sql.functions.udf
import org.apache.spark.sql.{DataFrame, SQLContext}
import org.apache.spark.storage.StorageLevel
import org.apache.spark.{SparkConf, SparkContext}

/** CaffeOnSpark's main class for spark-submit: trains, then tests or extracts features with the model. */
object CaffeOnSpark {
  def main(args: Array[String]): Unit = {
    val sc = SparkContext.getOrCreate(new SparkConf()
      .setIfMissing("spark.app.name", "CaffeOnSpark")
      .setIfMissing("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
      .setIfMissing("spark.scheduler.minRegisteredResourcesRatio", "1.0"))
    try run(sc, args)
    finally sc.stop()
  }

  private[caffe] def run(sc: SparkContext, args: Array[String]): Unit = {
    val conf = new Config(sc, args)
    if (conf.protoFile.isEmpty) throw new IllegalArgumentException("-conf is missing")
    if (!conf.isTraining && !conf.isTest && !conf.isFeature)
      throw new IllegalArgumentException("nothing to do: give -train, -test or -features BLOB,...")
    val caffe = new CaffeOnSpark(sc)
    if (conf.isTraining) {
      if (isTested(conf)) caffe.trainWithValidation(source(conf, true), source(conf, false))
      else caffe.train(source(conf, true))
    }
    if (conf.isFeature)
      caffe.features(source(conf, false)).write.format(conf.outputFormat).save(conf.outputPath)
    else if (conf.isTest) write(sc, conf.outputPath, caffe.test(source(conf, false)))
  }

  private def isTested(conf: Config): Boolean = {
    val solver = conf.solverParameter
    solver.getTestInterval > 0 && solver.getTestIterCount > 0 && solver.getTestIter(0) > 0
  }

  private def source(conf: Config, isTraining: Boolean): DataSource[Any, Any] =
    DataSource.getSource(conf, isTraining).asInstanceOf[DataSource[Any, Any]]

  /** A line for each blob: its name and its values. */
  private def write(sc: SparkContext, path: String, result: Map[String, Seq[Double]]): Unit = {
    val file = new Path(ImageDataSource.located(path))
    val out = file.getFileSystem(sc.hadoopConfiguration).create(file, true)
    try out.write(result.map { case (name, values) => s"$name: ${values.mkString(",")}\n" }.mkString.getBytes(UTF_8))
    finally out.close()
  }
}

/** Trains nets, tests them and extracts features, in the executors of a Spark application.
  *
  * All four read what to do of the source's `conf`, whose model they write or read.
  */
class CaffeOnSpark(@transient val sc: SparkContext) extends Serializable {
  @transient val sqlContext: SQLContext = ImageTable.session.sqlContext

  /** The first of a column's numbers, such as a label. */
  @transient val floatarray2doubleUDF: UserDefinedFunction =
    udf((floats: scala.collection.Seq[Float]) => floats.head.toDouble)

  /** A column's numbers as a vector of Spark ML. */
  @transient val floatarray2doublevectorUDF: UserDefinedFunction =
    udf((floats: scala.collection.Seq[Float]) => Vectors.dense(floats.map(_.toDouble).toArray): Vector)

  /** Trains, and writes the model and the solver's snapshots.
    *
    * @throws IllegalStateException if there are no data, or the cluster is not as `conf` says
    */
  def train[T1, T2](source: DataSource[T1, T2]): Unit = {
    trained(source, null)
    ()
  }

  /** Trains, with a test every `test_interval` steps.
    *
    * @return a row for each test: the mean of each output of the TEST net over all rows of `sourceValidation`
    */
  def trainWithValidation[T1, T2](
      sourceTrain: DataSource[T1, T2],
      sourceValidation: DataSource[T1, T2]): DataFrame =
    Validations.table(trained(sourceTrain, rows(sourceValidation)), sourceTrain.conf, sqlContext.sparkSession)

  /** The means of all outputs of the TEST net over all rows of the source. */
  def test[T1, T2](source: DataSource[T1, T2]): Map[String, Seq[Double]] = {
    source.conf.isTest = true
    val means = Submit.test(sqlContext.sparkSession, rows(source), source.conf.flags("-test"): _*)
    val found = ListMap.newBuilder[String, Seq[Double]]
    means.forEach((name, values) => found += name -> values.toArray(Array[java.lang.Double]()).toList.map(_.doubleValue))
    found.result()
  }

  /** `SampleID` and the blobs of `conf.features` for each row of the source, as arrays of floats. They are computed
    * once and kept on Spark's disks.
    */
  def features[T1, T2](source: DataSource[T1, T2]): DataFrame = {
    val conf = source.conf
    if (conf.features == null || conf.features.isEmpty)
      throw new IllegalArgumentException("conf.features names no blobs: set it, or give -features BLOB,...")
    conf.isTest = false
    val task = conf.flags("-features", conf.features.mkString(","))
    val found = Submit.features(sqlContext.sparkSession, rows(source), task: _*).persist(StorageLevel.DISK_ONLY)
    found.count()
    found
  }

  private def trained[T1, T2](source: DataSource[T1, T2], held: DataFrame): CaffeModel = {
    val conf = source.conf
    if (!conf.snapshotStateFile.isEmpty && conf.snapshotModelFile.isEmpty)
      throw new IllegalStateException(s"-snapshot ${conf.snapshotStateFile} needs the model that was saved with" +
        " it: add -weights PATH, or set conf.snapshotModelFile")
    try Submit.train(sqlContext.sparkSession, rows(source), held, conf.flags("-train"): _*)
    catch {
      case e: PreflightException => throw new IllegalStateException(e.getMessage, e)
    }
  }

  private def rows(source: DataSource[_, _]): DataFrame = source.table(sqlContext.sparkSession)
}
