// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

import java.awt.Color
import java.awt.image.BufferedImage
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import javax.imageio.ImageIO

/** Pictures of a colour and a shape, and captions that tell them in COCO's form. */
object Pictures {
  val Height = 20
  val Width = 24
  private val colors = Seq("red" -> Color.RED, "green" -> Color.GREEN, "blue" -> Color.BLUE)

  def file(id: Int): String = s"picture_$id.png"

  /** As people write them: with a capital, and a full stop. */
  def caption(id: Int): String = s"A ${colors(id % 3)._1} ${if (id % 2 == 0) "square" else "bar"}."

  /** The first has words that no other has, for which a vocabulary of the most frequent ones has no room. */
  private def written(id: Int): String = if (id == 0) "A red square, rarely." else caption(id)

  /** Draws so many pictures into a folder, each a little elsewhere. */
  def draw(folder: Path, count: Int): Unit = for (id <- 0 until count) {
    val image = new BufferedImage(Width, Height, BufferedImage.TYPE_3BYTE_BGR)
    val graphics = image.createGraphics()
    graphics.setColor(colors(id % 3)._2)
    val (x, y) = (id % 5, id / 5 % 4)
    if (id % 2 == 0) graphics.fillRect(4 + x, 2 + y, 12, 12) else graphics.fillRect(x, 7 + y, 20, 4)
    graphics.dispose()
    ImageIO.write(image, "png", folder.resolve(file(id)).toFile)
  }

  def coco(path: Path, count: Int, isCaptioned: Boolean): Unit = {
    val images = (0 until count).map(id =>
      s"""{"id": $id, "height": $Height, "width": $Width, "file_name": "${file(id)}",
         |"flickr_url": "flickr/$id", "coco_url": "coco/$id", "license": 3}""".stripMargin)
    val captions = (0 until count).reverse.map(id =>
      s"""{"id": ${1000 + id}, "image_id": $id, "caption": "${written(id)}"}""")
    val annotations = if (isCaptioned) s""", "annotations": [${captions.mkString(", ")}]""" else ""
    Files.write(path, s"""{"info": {"year": 2014}, "images": [${images.mkString(",\n")}] $annotations}""".getBytes(UTF_8))
  }
}
