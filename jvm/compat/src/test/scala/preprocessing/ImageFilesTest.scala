// SPDX-License-Identifier: Apache-2.0
package preprocessing

import java.nio.file.Path

import libs.ByteImage
import org.apache.spark.sql.SparkSession
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** Files of images, and databases made of them. */
class ImageFilesTest {
  @TempDir var folder: Path = _

  @Test def filesBecomeFullMinibatchesOfImages(): Unit = {
    val convert = new ScaleAndConvert(2, 3, 4)
    val image = convert.convertImage(Png.of(0x010203)).get
    assertEquals((3, 4), (image.getHeight(), image.getWidth()))
    assertEquals((1, 2, 3), (image.getRed(2, 3).toInt, image.getGreen(0, 1).toInt, image.getBlue(1, 0).toInt))
    assertTrue(convert.convertImage("no image".getBytes).isEmpty)
    val spark = SparkSession.builder().master("local[1]").getOrCreate()
    try {
      val files = (0 until 6).map(i => (if (i == 2) Array[Byte](1) else Png.of(i), i))
      val batches = convert(spark.sparkContext.parallelize(files, 1)).collect()
      assertEquals(Seq(Seq(0, 1), Seq(3, 4)), batches.toSeq.map(_._2.toSeq))
      assertEquals(3, batches(1)._1(0).getBlue(0, 0).toInt)
      for (kind <- Seq("lmdb", "leveldb")) {
        val database = folder.resolve(kind).toString
        new CreateDB(kind).makeDBFromMinibatchPartition(batches.iterator, database, 3, 4)
        val rows = spark.read.format(kind).load(database)
        assertEquals(Set("0", "1", "3", "4"), rows.select("label").collect().map(_.get(0).toString).toSet)
      }
    } finally spark.stop()
  }

  @Test def aDatabaseIsWrittenOnce(): Unit = {
    val database = folder.resolve("db").toString
    val images = Iterator.tabulate(3)(i => (new ByteImage(Array.fill(12)(i.toByte), 2, 2), i))
    val create = new CreateDB("lmdb")
    create.makeDBFromPartition(images, database, 2, 2)
    assertThrows(classOf[RuntimeException], () => create.makeDBFromPartition(Iterator.empty, database, 2, 2))
    assertThrows(classOf[IllegalArgumentException], () =>
      create.makeDBFromPartition(
        Iterator((new ByteImage(2, 2), 0)), folder.resolve("other").toString, 3, 3))
    assertThrows(classOf[IllegalArgumentException], () => { new CreateDB("sqlite"); () })
  }
}
