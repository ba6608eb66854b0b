// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit

import cafetiere.spark.Submit
import com.yahoo.ml.caffe.examples.MyMLPipeline
import org.apache.spark.ml.classification.LogisticRegressionModel
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api._
import users.{Bars, DrawnBars, Programs}

/** CaffeOnSpark's programs and classes of users, on two executors. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Timeout(value = 180, unit = TimeUnit.SECONDS)
class CaffeOnSparkTest {
  private val Rows = 205
  private val Steps = 12
  private var cluster: Cluster = _
  private var table: String = _
  private var expected: Array[Byte] = _

  /** The weights of the rows as a DataFrame; 205 rows make no whole number of batches in any partition. */
  @BeforeAll def train(@TempDir folder: Path): Unit = {
    cluster = new Cluster(folder)
    val rows = (0 until Rows).map(id => (f"bar $id%05d", id % Bars.Classes, Bars.pixels(id)))
    cluster.spark.createDataFrame(rows).toDF("id", "label", "data").repartition(2)
      .write.parquet(cluster.uri("bars"))
    table = cluster.uri("bars")
    for ((name, steps) <- Seq("expected" -> Steps, "early" -> 3)) {
      val layer = cluster.images("TRAIN", "", "").replace("source_class: \"\"", "")
      Submit.train(cluster.spark, cluster.spark.read.parquet(table), null, "-train", "-conf",
        cluster.solver(name, steps, layer), "-clusterSize", "2", "-model", cluster.uri(s"$name.model"))
    }
    expected = cluster.bytes("expected.model")
  }

  @AfterAll def stop(): Unit = cluster.spark.stop()

  private def trained(name: String, train: String, more: String*): Array[Byte] = {
    val args = Array("-conf", cluster.solver(name, Steps, train), "-train", "-model", cluster.uri(s"$name.model"))
    val flags = if (more.contains("-clusterSize")) Nil else Seq("-clusterSize", "2")
    CaffeOnSpark.run(cluster.sc, args ++ flags ++ more)
    cluster.bytes(s"$name.model")
  }

  /** Weights alone: the model holds the net, too, which names its source. */
  private def assertSame(model: Array[Byte]): Unit =
    assertArrayEquals(cafetiere.core.Engine.weightsHdf5(expected), cafetiere.core.Engine.weightsHdf5(model))

  @Test def aUsersSourceTrainsWithTheBitsOfItsRowsAsATable(): Unit = {
    assertSame(trained("drawn", cluster.images("TRAIN", "users.DrawnBars", Rows.toString), "-persistent"))
    assertEquals(Rows.toLong, DrawnBars.drawn.value, "each element was drawn once, for all epochs")
  }

  @Test def aUsersImageSourceDoesSo(): Unit =
    assertSame(trained("listed", cluster.images("TRAIN", "users.ListedBars", Rows.toString)))

  @Tag("long-run") @Test def soDoTheSourcesOfCaffeOnSpark(): Unit = {
    val rows = cluster.spark.read.parquet(table)
    rows.selectExpr("id", "label", "1 as channels", "28 as height", "28 as width", "false as encoded", "data")
      .write.format("lmdb").save(cluster.uri("bars_lmdb"))
    assertSame(trained("lmdb", cluster.images("TRAIN", "com.yahoo.ml.caffe.LMDB", cluster.uri("bars_lmdb")),
      "-lmdb_partitions", "3"))
    assertSame(trained("frame", cluster.images("TRAIN", "com.yahoo.ml.caffe.ImageDataFrame", table,
      "dataframe_column_select: 'id' dataframe_column_select: 'cast(label as string) label'" +
        " dataframe_column_select: 'data'")))
    assertSame(trained("cos", s"""layer { name: "data" type: "CoSData" top: "data" top: "label"
      include { phase: TRAIN } source_class: "com.yahoo.ml.caffe.DataFrameSource"
      cos_data_param { source: "$table" batch_size: 32
        top { name: "data" type: RAW_IMAGE channels: 1 height: 28 width: 28 transform_param { scale: 0.00390625 } }
        top { name: "label" type: INT channels: 1 sample_num_axes: 0 } } }"""))
  }

  @Test def anImageAndItsSizeComeAsCaffeOnSparksToolsWriteThem(): Unit = {
    cluster.spark.range(1).selectExpr("cast(id as string) id", "named_struct('height', 3, 'width', 2, 'image'," +
      " array(cast(7 as tinyint), cast(-8 as tinyint))) picture").write.parquet(cluster.uri("sized"))
    val conf = new Config(cluster.sc)
    conf.protoFile = cluster.solver("sized", 1, s"""layer { name: "data" type: "CoSData" top: "picture"
      source_class: "com.yahoo.ml.caffe.DataFrameSource" cos_data_param { source: "${cluster.uri("sized")}"
      batch_size: 1 top { name: "picture" type: ENCODED_IMAGE_WITH_DIM channels: 1 height: 3 width: 2 } } }""")
    val table = DataSource.getSource(conf, true).table(cluster.spark)
    val picture = table.select("picture.image", "picture.height", "picture.width").first()
    assertArrayEquals(Array[Byte](7, -8), picture.getAs[Array[Byte]](0))
    assertEquals((3, 2), (picture.getInt(1), picture.getInt(2)))
  }

  @Test def devicesAreShardsOfAnExecutor(): Unit = {
    val layer = cluster.images("TRAIN", "users.ListedBars", Rows.toString)
    assertSame(trained("devices", layer, "-clusterSize", "1", "-devices", "2"))
  }

  @Tag("long-run") @Test def weightsAreCopiedInOrder(): Unit = {
    val layer = cluster.images("TRAIN", "users.ListedBars", Rows.toString)
    val conf = cluster.solver("copied", 0, layer)
    def copied(weights: String): Array[Byte] = {
      CaffeOnSpark.run(cluster.sc, Array("-conf", conf, "-train", "-model", cluster.uri("copied.model"),
        "-clusterSize", "2", "-weights", weights))
      cluster.bytes("copied.model")
    }
    val (one, two) = (cluster.path("early.model"), cluster.path("expected.model"))
    assertSame(copied(s"$one,$two"))
    assertFalse(java.util.Arrays.equals(copied(s"$one,$two"), copied(s"$two,$one")))
  }

  @Test def testsOnTheWayAreRowsOfATable(): Unit = {
    val solver = cluster.solver("held", 41, cluster.images("TRAIN", "users.DrawnBars", Rows.toString),
      cluster.images("TEST", "users.DrawnBars", "103"), "test_interval: 10 test_iter: 2")
    val (rounds, last, tested) = Programs.accuracies(cluster.sc, solver, cluster.uri("held.model"))
    assertEquals(4, rounds)
    assertTrue(last > 0.8, last.toString)
    assertTrue(tested > 0.8, tested.toString)
  }

  @Tag("long-run") @Test def featuresAreTheInputOfSparkMl(): Unit = {
    val solver = cluster.solver("ml", 40, cluster.images("TRAIN", "users.DrawnBars", Rows.toString),
      cluster.images("TEST", "users.ListedBars", "103"))
    val args = Array("-conf", solver, "-model", cluster.uri("ml.model"), "-features", "ip2", "-label", "label",
      "-clusterSize", "2")
    val right = Programs.pipeline(cluster.sc, args)
    assertTrue(right > 0.9, right.toString)

    MyMLPipeline.run(cluster.sc, args ++ Array("-output", cluster.uri("regression")))
    val saved = LogisticRegressionModel.load(cluster.uri("regression"))
    assertEquals((Bars.Classes, Bars.Classes), (saved.numClasses, saved.numFeatures))
  }

  @Test def theMainClassNeedsASolver(): Unit = {
    for (task <- Seq("-train", "-test")) {
      val refused = assertThrows(classOf[IllegalArgumentException], () => CaffeOnSpark.run(cluster.sc, Array(task)))
      assertEquals("-conf is missing", refused.getMessage)
    }
  }

  @Test def theMainClassTrainsTestsAndExtracts(): Unit = {
    val solver = cluster.solver("main", 40, cluster.images("TRAIN", "users.ListedBars", Rows.toString),
      cluster.images("TEST", "users.DrawnBars", "103"), "test_interval: 20 test_iter: 2 snapshot: 25")
    def run(more: String*): Unit = CaffeOnSpark.run(cluster.sc,
      Array("-conf", solver, "-model", cluster.uri("models/main.model"), "-clusterSize", "2") ++ more)
    run("-train", "-test", "-output", cluster.uri("result.txt"))
    for (step <- Seq(25, 40); kind <- Seq("caffemodel", "solverstate"))
      assertTrue(Files.exists(cluster.path(s"models/main_iter_$step.$kind")), s"$kind of $step")
    assertArrayEquals(cluster.bytes("models/main.model"), cluster.bytes("models/main_iter_40.caffemodel"))
    val result = cluster.text(cluster.path("result.txt")).split("\n")
    assertEquals(2, result.length)
    assertTrue(result(0).matches("accuracy: [01]\\.\\d+"), result(0))
    assertTrue(result(1).matches("loss: \\d.*"), result(1))

    run("-test", "-features", "ip2", "-label", "label", "-output", cluster.uri("features"))
    val features = cluster.spark.read.json(cluster.uri("features"))
    assertEquals(Set("SampleID", "ip2", "label"), features.columns.toSet)
    val row = features.orderBy("SampleID").first()
    assertEquals("bar 00000", row.getAs[String]("SampleID"))
    assertEquals(Seq(0.0), row.getAs[scala.collection.Seq[Double]]("label").toList)
    assertEquals(10, row.getAs[scala.collection.Seq[Double]]("ip2").size)
    assertEquals(103, features.select("SampleID").distinct().count(), "no row is lost")
  }

  @Test def anAccuracyIsTheRowsOwn(): Unit = {
    val conf = new Config(cluster.sc, Array("-conf", cluster.solver("own", 1, "",
      cluster.images("TEST", "users.ListedBars", "103")), "-model", cluster.uri("early.model"),
      "-features", "ip2,accuracy", "-label", "label"))
    val source = DataSource.getSource(conf, false).asInstanceOf[DataSource[Any, Any]]
    val found = new CaffeOnSpark(cluster.sc).features(source).collect().map { row =>
      val Seq(scores, accuracy, label) =
        (1 to 3).map(row.getAs[scala.collection.Seq[Float]](_).toList)
      assertEquals(if (scores.indexOf(scores.max) == label.head) 1f else 0f, accuracy.head, row.getString(0))
      accuracy.head
    }
    assertEquals(Set(0f, 1f), found.toSet)
    val tested = new CaffeOnSpark(cluster.sc).test(source)("accuracy").head
    assertEquals(tested, found.map(_.toDouble).sum / found.length, 1e-6)
  }

  @Test def whatASourceDoesWrongIsTold(): Unit = {
    def refusal(sourceClass: String): String = {
      val conf = new Config(cluster.sc)
      conf.protoFile = cluster.solver("wrong", 1, cluster.images("TRAIN", sourceClass, "1"))
      assertThrows(classOf[IllegalArgumentException], () => { DataSource.getSource(conf, true); () }).getMessage
    }
    assertEquals("layer 'data': source_class users.Nobody is not on the class path; there are" +
      " com.yahoo.ml.caffe.LMDB, SeqImageDataSource, ImageDataFrame and DataFrameSource, and others come with" +
      " --jars", refusal("users.Nobody"))
    assertEquals("users.NoSource, the source_class of layer 'data', is no com.yahoo.ml.caffe.DataSource",
      refusal("users.NoSource"))
    assertEquals("users.Unmade has no public constructor of (Config, Int, Boolean)", refusal("users.Unmade"))

    val conf = new Config(cluster.sc, Array("-conf",
      cluster.solver("lossy", 1, cluster.images("TRAIN", "users.Impatient", Rows.toString)), "-model", "m",
      "-snapshot", "s"))
    assertTrue(assertThrows(classOf[IllegalArgumentException], () => {
      DataSource.getSource(conf, false)
      ()
    }).getMessage.startsWith("the net has no data layer for phase TEST"))
    val caffe = new CaffeOnSpark(cluster.sc)
    val source = DataSource.getSource(conf, true).asInstanceOf[DataSource[Any, Any]]
    def failure(): String =
      assertThrows(classOf[IllegalStateException], () => caffe.train(source)).getMessage
    assertTrue(failure().contains("needs the model that was saved with it"))
    conf.snapshotStateFile = ""
    val cause = assertThrows(classOf[Exception], () => caffe.train(source))
    assertTrue(cause.toString.contains("returns false before STOP_MARK came"), cause.toString)
  }
}
