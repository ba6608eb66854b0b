// SPDX-License-Identifier: Apache-2.0
package loaders

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.file.{Files, Path}

import org.apache.commons.compress.archivers.tar.{TarArchiveEntry, TarArchiveOutputStream}
import org.apache.spark.sql.SparkSession
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import preprocessing.Png

class LoadersTest {
  @TempDir var folder: Path = _

  private def write(name: String, bytes: Array[Byte]): Unit = Files.write(folder.resolve(name), bytes)

  private def message(code: => Any): String =
    assertThrows(classOf[IOException], () => { code; () }).getMessage

  /** A row whose label is 200 + n and whose values are all n. */
  private def cifar(rows: Int*): Array[Byte] =
    rows.flatMap(n => (200 + n).toByte +: Seq.fill(3072)(n.toByte)).toArray

  @Test def cifarsFiles(): Unit = {
    for (i <- 1 to 5) write(s"data_batch_$i.bin", cifar(2 * i, 2 * i + 1))
    write("test_batch.bin", cifar(20, 21, 22))
    val cifar10 = new CifarLoader(folder.toString)
    assertEquals(10, cifar10.nData)
    assertEquals((2 to 11).map(200 + _), cifar10.trainLabels.toSeq.sorted)
    for ((image, label) <- cifar10.trainImages.zip(cifar10.trainLabels))
      assertTrue(image.length == 3072 && image.forall(_ == label - 200))
    assertEquals(Seq(220, 221, 222), cifar10.testLabels.toSeq)
    assertEquals(6.5f, cifar10.meanImage(3071))
    val same = new CifarLoader(folder.toUri.toString)
    assertArrayEquals(cifar10.trainLabels, same.trainLabels)
    assertNotEquals(cifar10.trainLabels.toSeq, new CifarLoader(folder.toString, 1).trainLabels.toSeq)
    write("data_batch_3.bin", cifar(1).tail)
    assertTrue(message(new CifarLoader(folder.toString)).contains("data_batch_3.bin has 3072 bytes"))
    write("data_batch_3.bin", cifar(1))
    write("test_batch.bin", Array())
    assertTrue(message(new CifarLoader(folder.toString)).endsWith("test_batch.bin is empty: it must hold CIFAR's images"))
  }

  private def idx(sizes: Int*)(values: Array[Byte]): Array[Byte] = {
    val header = ByteBuffer.allocate(4 + 4 * sizes.length).putInt(0x800 + sizes.length)
    sizes.foreach(size => header.putInt(size))
    header.array ++ values
  }

  @Test def mnistsFiles(): Unit = {
    write("train-images-idx3-ubyte", idx(2, 28, 28)(Array.fill(784)(0.toByte) ++ Array.fill(784)(-1.toByte)))
    write("train-labels-idx1-ubyte", idx(2)(Array(7, 9)))
    write("t10k-images-idx3-ubyte", idx(1, 28, 28)(Array.fill(784)(51.toByte)))
    write("t10k-labels-idx1-ubyte", idx(1)(Array(3)))
    val mnist = new MnistLoader(s"$folder/")
    assertEquals(Seq(-0.5f, 0.5f), mnist.trainImages.map(_.last).toSeq)
    assertEquals(Seq(7L, 9L), mnist.trainLabels.toSeq)
    assertEquals(51f / 255 - 0.5f, mnist.testImages(0)(0))
    write("t10k-labels-idx1-ubyte", idx(2)(Array(3)))
    assertTrue(message(new MnistLoader(folder.toString)).endsWith("says that it has 2 rows, and has 1"))
    write("t10k-labels-idx1-ubyte", idx(1, 1)(Array(3)))
    assertTrue(message(new MnistLoader(folder.toString)).contains("is no IDX file of bytes"))
  }

  private def tar(name: String, files: (String, Array[Byte])*): Unit = {
    val out = new TarArchiveOutputStream(Files.newOutputStream(folder.resolve(name)))
    for ((file, bytes) <- files) {
      val entry = new TarArchiveEntry(file)
      entry.setSize(bytes.length)
      out.putArchiveEntry(entry)
      out.write(bytes)
      out.closeArchiveEntry()
    }
    out.close()
  }

  @Test def imagesInTars(): Unit = {
    tar("train.000.tar", "n1/a.png" -> Png.of(0x010203), "n1/b.png" -> Png.of(0x040506))
    tar("train.001.tar", "n2/c.png" -> Png.of(0x070809), "n2/d.png" -> "no image".getBytes)
    tar("val.000.tar", "e.png" -> Png.of(0))
    write("train.txt", "n1/a.png 1\nb.png 1\nn2/c.png 2\nn2/d.png 2\n".getBytes)
    val spark = SparkSession.builder().master("local[1]").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    try {
      val sc = spark.sparkContext
      spark.conf.set("spark.sql.shuffle.partitions", "2")
      val bucket = folder.toUri.toString.stripSuffix("/")
      val images = new ImageNetLoader(bucket)(sc, "train.00", "train.txt", 2, 3)
      assertEquals(2, images.getNumPartitions)
      val planes = Seq(Seq(1, 2, 3) -> 1, Seq(4, 5, 6) -> 1, Seq(7, 8, 9) -> 2)
      assertEquals(planes.map { case (rgb, label) => (rgb.flatMap(Seq.fill(6)(_)), label) },
        images.collect().toSeq.map { case (bytes, label) => (bytes.map(_.toInt).toSeq, label) })
      assertEquals(3 * 256 * 256, new ImageNetLoader(bucket)(sc, "train.000", "train.txt").first()._1.length)

      val files = new v1.ImageNetLoader(bucket)(sc, "train.00", "train.txt", Some(1))
      assertEquals(1, files.getNumPartitions)
      assertEquals(Seq(1, 1, 2, 2), files.map(_._2).collect().toSeq)
      assertArrayEquals(Png.of(0x010203), files.first()._1)
      assertEquals("2", spark.conf.get("spark.sql.shuffle.partitions"), "the session keeps its settings")
    } finally spark.stop()
  }
}
