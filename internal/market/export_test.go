package market

// BlobFromNothing is what Blobs should hold of a provider.
func (s *Snapshot) BlobFromNothing(provider string) Blob { return writeBlob(s.Of(provider), nil).Blob }
