// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.nn.driver

import java.io.ByteArrayOutputStream
import java.nio.file.{Files, Path, Paths}

import scala.util.Random

import misc.WeightConverter2
import org.apache.hadoop.io.{ArrayPrimitiveWritable, FloatWritable}
import org.apache.hadoop.mapred.SequenceFileOutputFormat
import org.apache.spark.sql.SparkSession
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.{AfterAll, BeforeAll, Test, TestInstance}

/** DeepSpark's programs, each with its arguments, on images of a bright band whose height is the class. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class DriversTest {
  private val Classes = 4
  private var folder: Path = _
  private var spark: SparkSession = _

  @BeforeAll def start(@TempDir made: Path): Unit = {
    folder = made
    spark = SparkSession.builder().master("local[2]").config("spark.executor.instances", "2").getOrCreate()
  }

  @AfterAll def stop(): Unit = spark.stop()

  private def path(name: String) = folder.resolve(name)
  private def write(name: String, text: String) = Files.write(path(name), text.getBytes("UTF-8")).toString

  /** The pixels of image `i`, plane by plane, and its class. */
  private def image(i: Int, channels: Int, side: Int): (Array[Int], Int) = {
    val random = new Random(i)
    val label = i % Classes
    (Array.tabulate(channels * side * side) { at =>
      val band = at / side % side * Classes / side
      if (band == label) 200 + random.nextInt(50) else random.nextInt(60)
    }, label)
  }

  private def lines(name: String, count: Int, channels: Int, side: Int): String =
    write(name, (0 until count).map { i =>
      val (pixels, label) = image(i, channels, side)
      (pixels :+ label).mkString("", "\t", "\n")
    }.mkString)

  private def solver(more: String = "", steps: Int = 60): String = write("solver.prototxt",
    s"base_lr: 0.05 momentum: 0.5 lr_policy: 'fixed' random_seed: 5 max_iter: $steps $more")

  /** Means of a quarter of the height and the width, and what they say of the class. */
  private def net(data: String, side: Int, scale: Double): String = write("net.prototxt",
    s"""layer { name: "rows" top: "data" top: "label" transform_param { scale: $scale } $data }
      layer { name: "pool" type: "Pooling" bottom: "data" top: "pool"
        pooling_param { pool: AVE kernel_size: ${side / 4} stride: ${side / 4} } }
      layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
        inner_product_param { num_output: $Classes weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }""")

  private def memory(channels: Int, side: Int, scale: Double = 1): String = net(
    s"""type: "MemoryData"
      memory_data_param { batch_size: 20 channels: $channels height: $side width: $side }""", side, scale)

  private def database(side: Int, scale: Double = 1): String =
    net("""type: "Data" data_param { source: "nowhere" batch_size: 20 }""", side, scale)

  private def param(): String = write("param.txt", "period: 5\nmoving_rate: 0.5\n")

  /** What a program prints. */
  private def said(program: => Unit): String = {
    val out = new ByteArrayOutputStream
    Console.withOut(out)(program)
    val text = out.toString("UTF-8")
    assertTrue("Training time: [0-9.]+ secs".r.findFirstIn(text).isDefined, text)
    text
  }

  private def accuracy(text: String): Double =
    "Accuracy: ([0-9.]+)".r.findFirstMatchIn(text).map(_.group(1).toDouble).getOrElse(fail(text))

  /** Runs what leaves a file in the current folder, and gives its bytes. */
  private def left(name: String)(program: => Unit): Array[Byte] = {
    val file = Paths.get(name)
    assertFalse(Files.exists(file), s"$file is there already")
    try {
      program
      Files.readAllBytes(file)
    } finally Files.deleteIfExists(file)
  }

  @Test def mnistByDownpour(): Unit = {
    val (train, test) = (lines("mnist", 400, 1, 28), lines("mnist_test", 100, 1, 28))
    val text = said(AsyncMnistTest.main(Array(solver(steps = 120), memory(1, 28), train, test)))
    assertTrue(accuracy(text) > 0.9, text)
  }

  @Test def cifarByDownpour(): Unit = {
    val (train, test) = (lines("cifar", 200, 3, 32), lines("cifar_test", 60, 3, 32))
    val text = said(AsyncCIFARTest.main(
      Array(solver(steps = 120), memory(3, 32, scale = 0.01), "4", train, test)))
    assertTrue(accuracy(text) > 0.9, text)
    val wrong = assertThrows(classOf[IllegalArgumentException],
      () => AsyncCIFARTest.main(Array(solver(), memory(3, 32), "0", train, test)))
    assertEquals("K is '0': it must be a number of at least 1", wrong.getMessage)
    val few = assertThrows(classOf[IllegalArgumentException], () => AsyncCIFARTest.main(Array(solver())))
    assertTrue(few.getMessage.startsWith("AsyncCIFARTest SOLVER NET K [TRAIN [TEST]]"), few.getMessage)
    val none = assertThrows(classOf[IllegalArgumentException], () => AsyncMnistTest.main(Array()))
    assertEquals("AsyncMnistTest SOLVER NET [TRAIN [TEST]]: there are 0 arguments", none.getMessage)
    val lost = assertThrows(classOf[IllegalArgumentException], () => AsyncMnistTest.main(Array(solver(), "nowhere")))
    assertEquals("NET is nowhere, and this machine has no such file: correct the path", lost.getMessage)
  }

  /** Two workers that exchange every 5 iterations have done so 8 times after 20. */
  @Test def cifarByElasticAveragingLeavesItsSnapshots(): Unit = {
    val train = lines("easgd_cifar", 200, 3, 32)
    val run = Files.createDirectory(path("run"))
    val own = solver(s"snapshot: 20 snapshot_prefix: '$run'", steps = 40)
    val netFile = database(32, scale = 0.01)
    val weights = left("final_cifar.weight") {
      said(AsyncEASGDCIFARLocalTest.main(Array(own, netFile, param(), train)))
    }
    for ((step, exchanges) <- Seq(20 -> 8, 40 -> 16)) {
      val again = path(s"again_$step.weight")
      WeightConverter2.convertCaffeModel(
        run.resolve(s"state_iter_$step.caffemodel").toString, again.toString, "", netFile, Array(3, 32, 32))
      assertArrayEquals(Files.readAllBytes(again), Files.readAllBytes(run.resolve(s"state_iter_$exchanges.weight")))
    }
    assertFalse(java.util.Arrays.equals(
      Files.readAllBytes(run.resolve("state_iter_8.weight")), Files.readAllBytes(run.resolve("state_iter_16.weight"))))
    assertEquals(Files.size(run.resolve("state_iter_16.weight")), weights.length.toLong)
  }

  @Test def mnistByElasticAveraging(): Unit = {
    val (train, test) = (lines("easgd_mnist", 200, 1, 28), lines("easgd_mnist_test", 100, 1, 28))
    val weights = left("final_weight.bin") {
      val text = said(AsyncEASGDMnistLocalTest.main(Array(solver(), database(28), param(), train, test)))
      assertTrue(accuracy(text) > 0.9, text)
    }
    assertTrue(weights.length > 16 * Classes * 4)
  }

  @Test def imagesOfSequenceFiles(): Unit = {
    val records = (0 until 120).map { i =>
      val (pixels, label) = image(i, 3, 8)
      (label.toFloat, pixels)
    }
    def save[T](name: String)(array: Array[Int] => T): String = {
      val data = spark.sparkContext.parallelize(records, 2)
      data.map { case (label, pixels) => (new FloatWritable(label), new ArrayPrimitiveWritable(array(pixels))) }
        .saveAsHadoopFile(path(name).toUri.toString, classOf[FloatWritable], classOf[ArrayPrimitiveWritable],
          classOf[SequenceFileOutputFormat[FloatWritable, ArrayPrimitiveWritable]])
      path(name).toUri.toString
    }
    val floats = save("floats")(DriversTest.toFloats)
    said(AsyncEASGDImageNetTest.main(Array(solver(), database(8, scale = 0.01), param(), floats)))
    val bytes = save("bytes")(DriversTest.toBytes)
    said(AsyncEASGDImageNetVarTest.main(Array(solver(), database(8, scale = 0.01), param(), bytes)))
  }
}

private object DriversTest {
  val toFloats: Array[Int] => Array[Float] = _.map(_.toFloat)
  val toBytes: Array[Int] => Array[Byte] = _.map(_.toByte)
}
