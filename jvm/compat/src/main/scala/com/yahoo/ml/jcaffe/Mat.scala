// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe

import java.awt.RenderingHints
import java.awt.image.BufferedImage
import java.io.ByteArrayInputStream

import javax.imageio.ImageIO

/** An image: pixels of 8 bits, pixel by pixel, or the bytes of a file until they are decoded. */
class Mat(private var c: Int, private var h: Int, private var w: Int, private var bytes: Array[Byte]) {
  def this(bytes: Array[Byte]) = this(1, 0, 0, bytes)

  def channels(): Int = c

  def height(): Int = h

  def width(): Int = w

  def data(): Array[Byte] = bytes

  def deallocate(): Unit = bytes = null

  /** Decodes the file that this holds; no size afterwards if it cannot be. */
  def decode(flags: Int): Unit = {
    val image = ImageIO.read(new ByteArrayInputStream(bytes))
    if (image == null) take(c, 0, 0, bytes)
    else if (flags == 0 || (flags < 0 && image.getRaster.getNumBands == 1)) take(image, BufferedImage.TYPE_BYTE_GRAY)
    else take(image, BufferedImage.TYPE_3BYTE_BGR)
  }

  /** Makes it fit a size. */
  def resize(height: Int, width: Int): Unit = {
    require(height > 0 && width > 0, s"an image cannot have the size $height x $width")
    val kind = if (c == 1) BufferedImage.TYPE_BYTE_GRAY else BufferedImage.TYPE_3BYTE_BGR
    val image = new BufferedImage(w, h, kind)
    image.getRaster.setDataElements(0, 0, w, h, bytes)
    take(image, kind, height, width)
  }

  private def take(image: BufferedImage, kind: Int): Unit = take(image, kind, image.getHeight, image.getWidth)

  private def take(image: BufferedImage, kind: Int, height: Int, width: Int): Unit = {
    val made = new BufferedImage(width, height, kind)
    val graphics = made.createGraphics()
    graphics.setRenderingHint(RenderingHints.KEY_INTERPOLATION, RenderingHints.VALUE_INTERPOLATION_BILINEAR)
    graphics.drawImage(image, 0, 0, width, height, null)
    graphics.dispose()
    val pixels = made.getRaster.getDataElements(0, 0, width, height, null).asInstanceOf[Array[Byte]]
    take(if (kind == BufferedImage.TYPE_BYTE_GRAY) 1 else 3, height, width, pixels)
  }

  private def take(channels: Int, height: Int, width: Int, pixels: Array[Byte]): Unit = {
    c = channels
    h = height
    w = width
    bytes = pixels
  }
}

object Mat {
  val CV_LOAD_IMAGE_UNCHANGED: Int = -1
  val CV_LOAD_IMAGE_GRAYSCALE = 0
  val CV_LOAD_IMAGE_COLOR = 1
}

/** The images of a batch. */
class MatVector(size: Int) {
  private val mats = new Array[Mat](size)

  /** Puts an image, and returns the one that was there. */
  def put(position: Int, mat: Mat): Mat = {
    val old = mats(position)
    mats(position) = mat
    old
  }

  def channels(position: Int): Int = at(position).map(_.channels()).getOrElse(-1)

  def height(position: Int): Int = at(position).map(_.height()).getOrElse(-1)

  def width(position: Int): Int = at(position).map(_.width()).getOrElse(-1)

  /** Its pixels; null where there is none. */
  def data(position: Int): Array[Byte] = at(position).map(_.data()).orNull

  def deallocate(): Unit = mats.indices.foreach(mats(_) = null)

  private def at(position: Int): Option[Mat] =
    if (position < 0 || position >= size) None else Option(mats(position))
}
