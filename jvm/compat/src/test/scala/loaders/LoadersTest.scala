// SPDX-License-Identifier: Apache-2.0
package loaders

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.file.{Files, Path}

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

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
}
