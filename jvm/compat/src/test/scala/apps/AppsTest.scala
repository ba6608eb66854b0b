// SPDX-License-Identifier: Apache-2.0
package apps

import java.awt.image.BufferedImage
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import javax.imageio.ImageIO

import scala.util.Random

import org.apache.commons.compress.archivers.tar.{TarArchiveEntry, TarArchiveOutputStream}
import org.apache.spark.sql.SparkSession
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.{AfterEach, BeforeEach, Tag, Test}

/** SparkNet's programs, on drawn images in the files of CIFAR-10 and MNIST. */
class AppsTest {
  @TempDir var home: Path = _

  private val root = Paths.get(sys.props("root"))

  @BeforeEach def setHome(): Unit = { sys.props("sparknet.home") = home.toString }
  @AfterEach def clearHome(): Unit = { sys.props -= "sparknet.home" }

  /** Six files of 60 images, whose brightness their class decides. */
  private def drawCifar(): Unit = {
    val data = Files.createDirectories(home.resolve("data/cifar10"))
    for (name <- (1 to 5).map(i => s"data_batch_$i.bin") :+ "test_batch.bin") {
      val random = new Random(name.hashCode)
      val records = Seq.fill(60) {
        val label = random.nextInt(10)
        label.toByte +: Array.fill(3072)((25 * label + random.nextInt(20)).toByte)
      }
      Files.write(data.resolve(name), records.toArray.flatten)
    }
    val models = Files.createDirectories(home.resolve("models/cifar10"))
    for (part <- Seq("solver", "train_test"))
      Files.copy(
        root.resolve(s"examples/cifar10/quick_$part.prototxt"),
        models.resolve(s"cifar10_quick_$part.prototxt"))
  }

  private def drawMnist(): Unit = {
    val data = Files.createDirectories(home.resolve("data/mnist"))
    for ((part, count) <- Seq("train" -> 512, "t10k" -> 128)) {
      val random = new Random(count)
      val labels = Array.fill(count)(random.nextInt(10).toByte)
      val images = labels.flatMap(label => Array.tabulate(784)(i =>
        (if (i / 28 / 3 == label) 200 + random.nextInt(50) else random.nextInt(50)).toByte))
      def ints(values: Int*) = values.flatMap(v => Seq(24, 16, 8, 0).map(s => (v >> s).toByte)).toArray
      Files.write(data.resolve(s"$part-images-idx3-ubyte"), ints(0x803, count, 28, 28) ++ images)
      Files.write(data.resolve(s"$part-labels-idx1-ubyte"), ints(0x801, count) ++ labels)
    }
  }

  private def log(): String = {
    val files = home.toFile.listFiles.filter(_.getName.startsWith("training_log_"))
    files.map(file => new String(Files.readAllBytes(file.toPath), UTF_8)).mkString
  }

  @Tag("long-run") @Test def cifarIsTrainedAndFeaturized(): Unit = {
    drawCifar()
    CifarApp.main(Array("--master=local[2]", "2", "2"))
    val model = home.resolve("cifar10_quick.caffemodel")
    assertTrue(Files.size(model) > 100000)
    assertTrue(log().contains("training: 20 iterations on 2 workers"), log())
    FeaturizerApp.main(Array("--master=local[2]", "2", model.toString))
    assertTrue(log().contains("featurized 300 images"), log())
    val spark = SparkSession.builder().master("local[1]").getOrCreate()
    try {
      val rows = spark.read.parquet(home.resolve("features.parquet").toString).collect()
      assertEquals(Set(64), rows.map(_.getSeq[Float](1).length).toSet)
      assertTrue(rows.map(_.getSeq[Float](1)).distinct.length > 100)
    } finally spark.stop()
  }

  @Test def mnistIsLearnt(): Unit = {
    drawMnist()
    MnistApp.main(Array("--master=local[2]", "2", "5"))
    val last = "i = 5: ([0-9.]+)% accuracy".r.findFirstMatchIn(log())
    assertTrue(last.exists(_.group(1).toDouble > 90), log())
    assertTrue(Files.exists(home.resolve("lenet.caffemodel")))
  }

  /** Images of two colours, and one file that is none. */
  private def drawImageNet(): Path = {
    val folder = Files.createDirectories(home.resolve("imagenet"))
    for ((part, count) <- Seq("train" -> 24, "val" -> 8)) {
      val inside = Files.createDirectories(folder.resolve(s"$part/deeper"))
      val lines = (0 until count).map { i =>
        val drawn = new BufferedImage(60 + i, 50, BufferedImage.TYPE_INT_RGB)
        for (y <- 0 until 50; x <- 0 until drawn.getWidth)
          drawn.setRGB(x, y, if (i % 2 == 0) 0xe01010 + x else 0x1010e0 + y)
        ImageIO.write(drawn, "jpg", inside.resolve(s"$part$i.jpg").toFile)
        s"$part$i.jpg ${i % 2}"
      }
      Files.write(inside.resolve("broken.jpg"), Array[Byte](1, 2, 3))
      Files.write(folder.resolve(s"$part.txt"), (lines :+ "broken.jpg 1").mkString("\n").getBytes)
    }
    val models = Files.createDirectories(home.resolve("models/bvlc_reference_caffenet"))
    Files.write(
      models.resolve("solver.prototxt"),
      "base_lr: 0.001 momentum: 0.9 lr_policy: 'fixed' random_seed: 1".getBytes)
    folder
  }

  @Tag("long-run") @Test def imagesOfFilesAreLearnt(): Unit = {
    val folder = drawImageNet()
    val net = cafetiere.dsl.Net.parse("""
      layer { name: "pool" type: "Pooling" bottom: "data" top: "pool"
        pooling_param { pool: AVE kernel_size: 227 } }
      layer { name: "fc8" type: "InnerProduct" bottom: "pool" top: "fc8"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "accuracy" type: "Accuracy" bottom: "fc8" bottom: "label" top: "accuracy"
        include { phase: TEST } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc8" bottom: "label" top: "loss" }
      """).toProto
    Averaging.run("ImageNet", Array("--master=local[2]", "2")) { (spark, home, _, logger) =>
      ImageNetApp.train(spark, home, folder.toString, 2, logger, net, 4, 5, 10)
    }
    assertTrue(log().contains("24 images to train on"), log())
    assertTrue(log().contains("i = 10: 100.00% accuracy"), log())
    assertTrue(Files.exists(home.resolve("imagenet_mean.binaryproto")))
  }

  /** As put_imagenet_on_s3.py left them. */
  @Test def imagesOfTarsAreTheSame(): Unit = {
    val folder = drawImageNet()
    val tars = Files.createDirectories(home.resolve("bucket/ILSVRC2012_img_val"))
    val out = new TarArchiveOutputStream(Files.newOutputStream(tars.resolve("val.00000.tar")))
    for (i <- 0 until 8) {
      out.putArchiveEntry(new TarArchiveEntry(folder.resolve(s"val/deeper/val$i.jpg").toFile, s"val$i.jpg"))
      Files.copy(folder.resolve(s"val/deeper/val$i.jpg"), out)
      out.closeArchiveEntry()
    }
    out.close()
    Files.copy(folder.resolve("val.txt"), home.resolve("bucket/val.txt"))
    val spark = SparkSession.builder().master("local[1]").getOrCreate()
    try {
      val Seq(files, packed) = Seq(folder, home.resolve("bucket")).map { path =>
        ImageNetApp.images(spark, path.toString, "val").collect().map(row => (row.getInt(1), row.getAs[Array[Byte]](0).toSeq))
      }
      assertEquals(8, packed.length)
      assertEquals(files.toSet, packed.toSet)
    } finally spark.stop()
  }

  @Test def whatIsMissingIsSaid(): Unit = {
    def told(args: String*): String =
      assertThrows(classOf[IllegalArgumentException], () => CifarApp.main(args.toArray)).getMessage
    assertEquals("there is no option --workers=2, only --master=URL", told("--workers=2"))
    assertTrue(told().contains("number of workers"))
    val home = sys.props("sparknet.home")
    try {
      sys.props("sparknet.home") = "/nowhere"
      assertEquals("SPARKNET_HOME is /nowhere, which is no folder: set it to SparkNet's", told("2"))
    } finally sys.props("sparknet.home") = home
  }

  @Test def programsThatAreNotHereSayWhatIs(): Unit =
    for (program <- Seq(AlexNetMultiGPUApp, GoogleNetMultiGPUApp, TFImageNetApp, CifarDBApp, ImageNetCreateDBApp,
        ImageNetRunDBApp)) {
      val said = assertThrows(classOf[UnsupportedOperationException], () => program.main(Array("5"))).getMessage
      assertTrue(said.matches("[A-Za-z]+App [a-zA-Z ]+: .*(apps\\.[A-Z]|Submit -sync average).*"), said)
    }
}
