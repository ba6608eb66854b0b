// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import com.yahoo.ml.caffe.tools.{Binary2DataFrame, Binary2Sequence, Pictures}
import com.yahoo.ml.jcaffe.{CaffeNet, FloatDataTransformer}
import org.apache.spark.sql.SparkSession
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.{AfterAll, BeforeAll, Test, TestInstance}

/** A program that makes its SequenceFile, its batches and its steps itself, as CaffeOnSpark's own tests did. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class HandFedTest {
  private val Count = 12
  private var folder: Path = _
  private var spark: SparkSession = _

  @BeforeAll def start(@TempDir made: Path): Unit = {
    folder = made
    spark = SparkSession.builder().master("local[1]").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    Pictures.draw(folder, Count)
    write("labels.txt", (0 until Count).map(i => s"${Pictures.file(i)} ${i % 3}\n").mkString)
    write("ids.txt", (0 until Count).map(i => s"${Pictures.file(i)} ${i % 3} id$i\n").mkString)
    write("net", Seq("TRAIN", "TEST").map(data).mkString +
      """layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
      layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }""")
    write("solver", s"""net: "$folder/net" base_lr: 0.01 lr_policy: "fixed" max_iter: 100 random_seed: 3
      snapshot_prefix: "$folder/own" snapshot_format: HDF5""")
  }

  @AfterAll def stop(): Unit = spark.stop()

  private def write(name: String, text: String): Unit = Files.write(folder.resolve(name), text.getBytes(UTF_8))
  private def uri(name: String) = folder.resolve(name).toUri.toString

  private def data(phase: String) =
    s"""layer { name: "data" type: "MemoryData" top: "data" top: "label" include { phase: $phase }
      source_class: "com.yahoo.ml.caffe.SeqImageDataSource"
      transform_param { scale: 0.0039 crop_size: 16 mirror: true }
      memory_data_param { source: "${uri("pictures")}" batch_size: 4 channels: 3 height: 16 width: 16 } }
    """

  private def config(model: String, labels: String = "labels.txt") = new Config(spark.sparkContext, Array(
    "-conf", folder.resolve("solver").toString, "-model", model, "-resize", "-imageRoot", uri(""),
    "-labelFile", uri(labels)))

  @Test def aSourceFeedsANet(): Unit = {
    val sc = spark.sparkContext
    val conf = config(uri("models/trained"))
    new Binary2Sequence(sc, conf).makeRDD().saveAsSequenceFile(uri("pictures"))
    val source = new SeqImageDataSource(conf, conf.train_data_layer_id, true)
    assertTrue(source.init())
    source.resetQueue()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    val rows = source.makeRDD(sc).persist()
    assertEquals("2", spark.conf.get("spark.sql.shuffle.partitions"), "the session keeps its settings")
    assertEquals((0 until Count).map(Pictures.file).toSet, rows.map(_._1).collect().toSet)

    val net = new CaffeNet(conf.protoFile, "", "", 1, 1, 0, true, CaffeNet.NONE, -1, 0)
    assertTrue(net.connect(null))
    val (blobs, holder) = (source.dummyDataBlobs(), source.dummyDataHolder())
    val ids = new Array[String](source.batchSize())
    val transformer = new FloatDataTransformer(source.transformationParameter, true)
    for (_ <- 0 until 3) {
      assertTrue(rows.take(source.batchSize()).map(source.offer(_)).reduce(_ && _))
      assertTrue(source.nextBatch(ids, holder))
      transformer.transform(holder._1, blobs(0))
      blobs(1).copyFrom(holder._2)
      assertTrue(net.train(0, blobs))
    }
    assertTrue(net.predict(0, blobs, Array("accuracy", "loss")).forall(_.cpu_data().get(0) < 50))

    FSUtils.GenModelOrState(net, conf.modelPath, false)
    assertTrue(Files.size(folder.resolve("models/trained.h5")) > 0, "the solver's format shows in the name")
    FSUtils.GenModelOrState(net, conf.modelPath, true)
    for (kind <- Seq("caffemodel", "solverstate"))
      assertTrue(Files.exists(folder.resolve(s"models/own_iter_3.$kind.h5")), kind)
    assertFalse(Files.exists(folder.resolve("own_iter_3.caffemodel.h5")), "they are moved")
    FSUtils.CopyFileToLocal(uri("models/trained.h5"), folder.resolve("copy").toString)
    assertArrayEquals(
      Files.readAllBytes(folder.resolve("models/trained.h5")), Files.readAllBytes(folder.resolve("copy")))
    net.deallocate()
  }

  @Test def rowsForADataFrame(): Unit = {
    val rows = new Binary2DataFrame(spark.sparkContext, config("m", "ids.txt")).makeRDD().collect()
    assertEquals(
      (0 until Count).map(i => (s"id$i", i % 3)).toSet, rows.map(row => (row.getString(0), row.getInt(1))).toSet)
    assertArrayEquals(Files.readAllBytes(folder.resolve(Pictures.file(0))), rows(0).getAs[Array[Byte]](2))
  }

  @Test def theMeanOfVectors(): Unit = {
    val session = spark
    import session.implicits._
    val table = Seq(Array(20.37f, -11.34f), Array(56.87f, 45.89f), Array(123.56f, 127.3f)).toDF("data")
    val mean = table.agg(new VectorMean(2)(table("data"))).first().getSeq[Double](0)
    assertEquals(66.93333, mean.head, 1e-5)
    assertEquals(53.95, mean(1), 1e-5)
  }
}
